# Drivers and ORMs of Ruby, besides ActiveRecord, each with its own inserts into the tables of shop.sql.

require "pg"
require "sequel"

BIG = 2**53 # snowflake ids are above this, numbers of a tag are not

def check(holds, claim)
  puts "#{holds ? 'ok' : 'FAILED'}: #{claim}"
  exit 1 unless holds
end

def new?(ids, count) = ids == ids.uniq.sort && ids.size == count && ids.first > BIG

puts "== pg #{PG::VERSION}"
db = PG.connect
ids = db.exec("INSERT INTO customer (name) SELECT 'row ' || n FROM generate_series(1, 1000) n RETURNING id").column_values(0)
check new?(ids.map(&:to_i), 1000), "exec() of INSERT ... RETURNING of 1,000"

puts "== Sequel #{Sequel.version}"
DB = Sequel.connect(ENV["DATABASE_URL"].sub("postgresql:", "postgres:"))
class Customer < Sequel::Model(:customer)
  one_to_many :invoices, key: :customer_id
end
class Invoice < Sequel::Model(:invoice)
  many_to_one :customer
end
ada = Customer.create(name: "Ada")
check new?([ada.id], 1) && Customer[ada.id].name == "Ada", "create() sets the id, and finds it"
check ada.add_invoice({}).id == 2, "a number of a tag, and a relation"
made = DB[:customer].returning(:id).multi_insert_sql([:name], (0...1000).map { |n| ["row #{n}"] })
ids = made.flat_map { |sql| DB.fetch(sql).map(:id) }
check new?(ids, 1000), "multi_insert() of 1,000"
check DB[:customer].insert(name: "Ada") > BIG, "a dataset's insert() returns the id"
