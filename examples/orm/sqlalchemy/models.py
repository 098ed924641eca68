from sqlalchemy import BigInteger, ForeignKey, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    pass


# All keys are declared like bigserial, so that SQLAlchemy inserts in batches. The column's default in the database makes the ids.
# The migrations set that default.
class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    orders: Mapped[list["Order"]] = relationship(back_populates="customer")


class Invoice(Base):
    __tablename__ = "invoice"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id))


class Order(Base):
    __tablename__ = "order"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id))
    note: Mapped[str] = mapped_column(Text)
    customer: Mapped[Customer] = relationship(back_populates="orders")
