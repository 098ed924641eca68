require_relative "models"
require "active_record/fixtures"
require "stringio"
require "tmpdir"

BIG = 2**53 # snowflake ids are above this, numbers of a sequence are not

def check(holds, claim, kind = "ok")
  puts "#{holds ? kind : 'FAILED'}: #{claim}"
  exit 1 unless holds
end

puts "== ActiveRecord #{ActiveRecord.version}"
$stdout.sync = true
ActiveRecord::Base.establish_connection(ENV["DATABASE_URL"])
ActiveRecord::Migration.verbose = false
migrations = ActiveRecord::MigrationContext.new("migrate", ActiveRecord::SchemaMigration)
connection = ActiveRecord::Base.connection

migrations.migrate(1)
3.times { |n| Customer.create!(name: "old #{n}") }
Invoice.create!(customer_id: 1)
migrations.migrate
[Customer, Invoice, Order].each(&:reset_column_information)
check(connection.select_value(<<~SQL), "CREATE EXTENSION, attach and the first id in one migration of a new server")
  SELECT c.id > #{BIG} AND c.xmin = e.xmin FROM customers AS c, pg_extension AS e
  WHERE name = 'migrated' AND extname = 'snowflake_ids'
SQL

ada = Customer.create!(name: "Ada")
check(ada.id > BIG && Customer.find(3).name == "old 2", "attach in a migration: create! gives snowflake ids; old rows keep theirs")
check(Invoice.create!(customer: ada).id == 2, "attach with a tag: create! continues above the rows")

inserts = []
ActiveSupport::Notifications.subscribe("sql.active_record") do |event|
  inserts << event.payload[:sql] if event.payload[:sql].start_with?("INSERT")
end
ids = Order.insert_all(Array.new(1000) { |n| { customer_id: ada.id, note: "order #{n}" } }).pluck("id")
check(inserts.size == 1 && ids.uniq.size == 1000, "insert_all of 1,000 is one statement and returns the ids")
check(ada.orders.order(:id).map(&:note) == Array.new(1000) { |n| "order #{n}" }, "ids are in the order of the rows, which are read by a relation")

Dir.mktmpdir do |folder|
  File.write("#{folder}/orders.yml", "one: { id: 77, customer_id: 1, note: fixture }\ntwo: { id: 78, customer_id: 1, note: fixture }\n")
  File.write("#{folder}/invoices.yml", "one: { id: 77, customer_id: 1 }\n")
  ActiveRecord::FixtureSet.create_fixtures(folder, %w[orders invoices])
end
%w[customers invoices orders].each { |table| connection.reset_pk_sequence!(table) }
check(Order.create!(customer: ada, note: "x").id > BIG, "fixtures with ids of their own, reset_pk_sequence!; new ids stay snowflakes")
check(Invoice.create!(customer: ada).id == 78, "ids of a tag continue above the fixture's ids")

dump = lambda { StringIO.new.tap { |out| ActiveRecord::SchemaDumper.dump(connection, out) }.string }
before = dump.call
eval(before) # db:schema:load does the same: it creates all tables again
check(dump.call == before && Customer.create!(name: "x").id > BIG, "schema.rb, loaded and dumped, is the same; its tables give ids")

highest = Customer.maximum(:id)
migrations.migrate(1)
check(Customer.create!(name: "x").id > highest, "the migration reverted: the columns have sequences again, above all ids")
connection.enable_extension "snowflake_ids"

# Traps, in tables beside the application's.
def fails(table)
  yield table
  nil
rescue ActiveRecord::StatementInvalid => e
  e.message
end

connection.execute("SELECT snowflake_ids.segment_create('trap')")
connection.create_table(:named, id: :bigint, default: -> { "segment_nextval('trap')" })
connection.create_table(:nameless, id: :bigint, default: -> { "snowflake_nextval()" })
connection.create_table(:unknown, id: :bigint, default: -> { "segment_id('unknown')" })
reset = connection.method(:reset_pk_sequence!)
check(fails(:named, &reset)&.include?('relation "public.trap" does not exist'),
      "in a new table with segment_nextval('trap'), reset_pk_sequence! (and so fixtures) looks for a sequence trap, and fails", "trap")
check(fails(:nameless, &reset), "snowflake_nextval() in a new table makes reset_pk_sequence! fail, too", "trap")
check(fails(:unknown) { Class.new(ActiveRecord::Base) { self.table_name = "unknown" }.create! }&.include?("segment_create('unknown')"),
      "schema.rb has no tags: the error of an insert says how to create the missing tag", "trap")
