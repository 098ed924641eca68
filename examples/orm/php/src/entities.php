<?php

use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity, ORM\Table(name: 'customer')]
class Customer
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue(strategy: 'IDENTITY')]
    public ?string $id = null;
    #[ORM\Column(type: 'text')]
    public string $name;
}

#[ORM\Entity, ORM\Table(name: 'invoice')]
class Invoice
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue(strategy: 'IDENTITY')]
    public ?string $id = null;
    #[ORM\ManyToOne, ORM\JoinColumn(name: 'customer_id', nullable: false)]
    public Customer $customer;
}
