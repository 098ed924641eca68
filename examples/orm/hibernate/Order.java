import javax.persistence.*;

@Entity
@Table(name = "orders")
public class Order { // its keys come from the column's default
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    public Long id;
    @ManyToOne(fetch = FetchType.LAZY)
    public Customer customer;
    public String note;

    public Order() {}

    public Order(Customer customer, String note) {
        this.customer = customer;
        this.note = note;
    }
}
