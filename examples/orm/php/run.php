<?php

// Drivers and ORMs of PHP, each with its own inserts into the tables of shop.sql.

require 'src/entities.php';
require 'Doctrine/ORM/autoload.php';
require 'Illuminate/Database/autoload.php';

const BIG = 2 ** 53; // snowflake ids are above this, numbers of a tag are not

function check(bool $holds, string $claim, string $kind = 'ok'): void
{
    echo($holds ? $kind : 'FAILED'), ": $claim\n";
    $holds || exit(1);
}

function begin(string $name, string $package): void
{
    echo "== $name ", preg_replace('/^\d+:|[+-].*/', '', shell_exec("dpkg-query -W -f '\${Version}' $package")), "\n";
}

// Whether $ids are $count snowflake ids, in the order of their rows.
function areNew(array $ids, int $count): bool
{
    $sorted = $ids;
    sort($sorted);
    return count(array_unique($ids)) === $count && $ids === $sorted && $ids[0] > BIG;
}

['PGHOST' => $host, 'PGPORT' => $port, 'PGDATABASE' => $database, 'PGUSER' => $user, 'PGPASSWORD' => $password] = getenv();
$names = array_map(fn ($n) => ['name' => "row $n"], range(0, 999));

begin('PHP', 'php8.2-cli');
$pg = pg_connect("host=$host port=$port dbname=$database user=$user password=$password");
$id = pg_fetch_result(pg_query_params($pg, 'INSERT INTO customer (name) VALUES ($1) RETURNING id', ['Ada']), 0, 0);
check(areNew([(int) $id], 1), 'pg_query_params() with RETURNING');

$pdo = new PDO("pgsql:host=$host;port=$port;dbname=$database", $user, $password);
$pdo->prepare('INSERT INTO customer (name) VALUES (?)')->execute(['Ada']);
check($pdo->lastInsertId() === $pdo->query("SELECT max(id)::text FROM customer")->fetchColumn(), 'PDO::lastInsertId() is the id');
check($pdo->lastInsertId('customer_id_seq') === $pdo->lastInsertId(), 'PDO::lastInsertId() of the former sequence is the id, too');
$pdo->prepare('INSERT INTO invoice (customer_id) VALUES (?)')->execute([$id]);
check($pdo->lastInsertId() === '2' && $pdo->lastInsertId('invoice_id_seq') === '2', 'PDO::lastInsertId() is the number of a tag');

begin('Laravel (Eloquent)', 'php-illuminate-database');
$capsule = new Illuminate\Database\Capsule\Manager();
$capsule->addConnection(['driver' => 'pgsql', 'charset' => 'utf8'] + compact('host', 'port', 'database') + ['username' => $user, 'password' => $password]);
$capsule->setAsGlobal();
$capsule->bootEloquent();
class EloquentCustomer extends Illuminate\Database\Eloquent\Model
{
    protected $table = 'customer';
    protected $guarded = [];
    public $timestamps = false;

    public function invoices()
    {
        return $this->hasMany(EloquentInvoice::class, 'customer_id');
    }
}
class EloquentInvoice extends Illuminate\Database\Eloquent\Model
{
    protected $table = 'invoice';
    protected $guarded = [];
    public $timestamps = false;
}
$ada = EloquentCustomer::create(['name' => 'Ada']);
check(areNew([$ada->id], 1) && EloquentCustomer::find($ada->id)->name === 'Ada', 'create() sets the id, and find() finds it');
check($ada->invoices()->create([])->id === 3, 'a number of a tag, and a relation');
EloquentCustomer::insert(array_map(fn ($row) => ['name' => "eloquent $row[name]"], $names));
check(areNew(EloquentCustomer::where('name', 'like', 'eloquent%')->orderBy('id')->pluck('id')->all(), 1000), 'insert() of 1,000');
check(areNew([$capsule->table('customer')->insertGetId(['name' => 'Ada'])], 1), 'insertGetId()');
check(is_int($ada->id) && json_encode($ada->id) === (string) $ada->id, "an id is written to JSON as a number: give the model \$casts = ['id' => 'string'] for browsers", 'trap');

begin('Doctrine', 'php-doctrine-orm');
$config = Doctrine\ORM\ORMSetup::createAttributeMetadataConfiguration([__DIR__ . '/src'], true);
$config->setMetadataCache(new Symfony\Component\Cache\Adapter\ArrayAdapter());
$connection = Doctrine\DBAL\DriverManager::getConnection(['driver' => 'pdo_pgsql', 'dbname' => $database] + compact('host', 'port', 'user', 'password'));
$connection->getConfiguration()->setSchemaAssetsFilter(fn ($asset) => !str_starts_with(is_string($asset) ? $asset : $asset->getName(), 'snowflake_ids.'));
$entities = new Doctrine\ORM\EntityManager($connection, $config);
$made = [];
foreach ($names as $row) {
    $made[] = $customer = new Customer();
    $customer->name = $row['name'];
    $entities->persist($customer);
}
$invoice = new Invoice();
$invoice->customer = $made[0];
$entities->persist($invoice);
$entities->flush();
check(areNew(array_map(fn ($c) => (int) $c->id, $made), 1000), 'flush() of 1,000 sets the ids');
check($invoice->id === '4', 'a number of a tag, and a relation');
$tool = new Doctrine\ORM\Tools\SchemaTool($entities);
$differences = fn () => $tool->getUpdateSchemaSql($entities->getMetadataFactory()->getAllMetadata(), true);
check(in_array('ALTER TABLE customer ALTER id DROP DEFAULT', $differences()), "the schema's diff removes the default of an attached column", 'trap');
$connection->executeStatement("ALTER TABLE customer ALTER id SET DEFAULT nextval('customer_id_seq')");
$connection->executeStatement("SELECT snowflake_ids.detach('invoice', 'id', 'sequence')");
$connection->executeStatement("SELECT snowflake_ids.bind_sequence('invoice_id_seq', 'segment', 'invoices')");
check($differences() === [], 'where the default is nextval of a bound sequence, there is no difference');
$customer = new Customer();
$customer->name = 'after it';
$invoice = new Invoice();
$invoice->customer = $customer;
array_map([$entities, 'persist'], [$customer, $invoice]);
$entities->flush();
check(areNew([(int) $customer->id], 1) && $invoice->id === '5', 'flush() gives the same ids');
