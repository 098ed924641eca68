import javax.persistence.*;

@Entity
@Table(name = "customer")
public class Customer { // its keys come from blocks of 50 of a sequence: Hibernate's pooled optimizer, as it was before
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "customer_seq")
    @SequenceGenerator(name = "customer_seq", sequenceName = "customer_seq", allocationSize = 50)
    public Long id;
    public String name;

    public Customer() {}

    public Customer(String name) {
        this.name = name;
    }
}
