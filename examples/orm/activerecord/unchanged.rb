# The first migration, in a database with new_columns = bound.
require_relative "models"
require "stringio"

ActiveRecord::Base.establish_connection(ENV["DATABASE_URL"])
ActiveRecord::Migration.verbose = false
ActiveRecord::MigrationContext.new("migrate", ActiveRecord::SchemaMigration).migrate(1)
made = Customer.insert_all(Array.new(1000) { |n| { name: "customer #{n}" } }).pluck("id")
dump = StringIO.new.tap { |out| ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection, out) }.string
exit 1 unless dump.include?('create_table "customers", force: :cascade do |t|')
puts "ok: new_columns = 'bound': the first migration gives ids, and schema.rb shows a plain key"
File.write(ARGV[0], made.map { |id| "#{id}\n" }.join)
