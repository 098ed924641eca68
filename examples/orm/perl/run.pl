# Drivers and ORMs of Perl, each with its own inserts into the tables of shop.sql.

use v5.36;
use DBI;

my $big = 2**53;    # snowflake ids are above this, numbers of a tag are not

sub check ( $holds, $claim, $kind = 'ok' ) {
    say +( $holds ? $kind : 'FAILED' ) . ": $claim";
    exit 1 unless $holds;
}

# Whether @ids are $count snowflake ids, in the order of their rows.
sub are_new ( $count, @ids ) {
    return @ids == $count && !grep { $ids[$_] <= ( $_ ? $ids[ $_ - 1 ] : $big ) } 0 .. $#ids;
}

my $dsn = "dbi:Pg:";    # libpq's PG* variables give the rest
my @rows = map { "row $_" } 0 .. 999;

say "== DBD::Pg " . do { require DBD::Pg; $DBD::Pg::VERSION };
my $db = DBI->connect( $dsn, undef, undef, { RaiseError => 1 } );
my ($ada) = $db->selectrow_array( 'INSERT INTO customer (name) VALUES (?) RETURNING id', undef, 'Ada' );
check are_new( 1, $ada ), 'selectrow_array() with RETURNING';
$db->do( 'INSERT INTO customer (name) VALUES (?)', undef, 'Ada' );
check are_new( 2, $ada, $db->last_insert_id( undef, 'public', 'customer', undef ) ), 'last_insert_id() of the table is the id';
$db->do( 'INSERT INTO invoice (customer_id) VALUES (?)', undef, $ada );
check $db->last_insert_id( undef, undef, undef, undef, { sequence => 'invoice_id_seq' } ) == 2, 'last_insert_id() is the number of a tag';
my $insert = $db->prepare('INSERT INTO customer (name) VALUES (?)');
check $insert->execute_array( {}, \@rows ) == 1000, 'execute_array() of 1,000';

package Shop::Customer {
    use base 'DBIx::Class::Core';
    __PACKAGE__->table('customer');
    __PACKAGE__->add_columns( id => { data_type => 'bigint', is_auto_increment => 1 }, name => { data_type => 'text' } );
    __PACKAGE__->set_primary_key('id');
    __PACKAGE__->has_many( invoices => 'Shop::Invoice', 'customer_id' );
}

package Shop::Invoice {
    use base 'DBIx::Class::Core';
    __PACKAGE__->table('invoice');
    __PACKAGE__->add_columns( id => { data_type => 'bigint', is_auto_increment => 1 }, customer_id => { data_type => 'bigint' } );
    __PACKAGE__->set_primary_key('id');
}

package Shop {
    use base 'DBIx::Class::Schema';
    __PACKAGE__->register_class( Customer => 'Shop::Customer' );
    __PACKAGE__->register_class( Invoice  => 'Shop::Invoice' );
}

say "== DBIx::Class $DBIx::Class::VERSION";
my $shop     = Shop->connect($dsn);
my $customer = $shop->resultset('Customer')->create( { name => 'Ada' } );
check are_new( 1, $customer->id ), 'create() sets the id';
check $customer->create_related( invoices => {} )->id == 3, 'a number of a tag, and a relation';
my @made = $shop->resultset('Customer')->populate( [ map { { name => $_ } } @rows ] );
check are_new( 1000, map { $_->id } @made ), 'populate() of 1,000 sets the ids';

package Rose::Shop {
    use base 'Rose::DB';
    __PACKAGE__->use_private_registry;
    __PACKAGE__->register_db( driver => 'Pg', map { $_ => $ENV{ 'PG' . uc } } qw(host port database) );
}

package Rose::Customer {
    use base 'Rose::DB::Object';
    sub init_db { Rose::Shop->new_or_cached }
    __PACKAGE__->meta->table('customer');
    __PACKAGE__->meta->auto_initialize;
}

package Rose::Sequenced {
    use base 'Rose::DB::Object';
    sub init_db { Rose::Shop->new_or_cached }
    $db->do("ALTER TABLE customer ALTER id SET DEFAULT nextval('customer_id_seq')");
    __PACKAGE__->meta->table('customer');
    __PACKAGE__->meta->auto_initialize;
}

say "== Rose::DB::Object $Rose::DB::Object::VERSION";
my $refused = !eval { Rose::Customer->new( name => 'Ada' )->save };
check $refused, "a class generated from the table sends the text of the default as the id (22P02)", 'trap';
my $rose = Rose::Sequenced->new( name => 'Ada' );
$rose->save;
check are_new( 1, $rose->id ), "where the default is nextval of the column's sequence, which attach has bound, save() sets the id";
