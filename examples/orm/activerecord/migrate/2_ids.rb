class Ids < ActiveRecord::Migration[6.1]
  def up
    enable_extension "snowflake_ids"
    execute "SELECT snowflake_ids.attach('customers', 'id')"
    execute "SELECT snowflake_ids.attach('invoices', 'id', kind => 'segment', tag => 'invoices')"
    # Rails takes a default that contains "nextval" for a sequence's default. Use snowflake_id() and segment_id() instead.
    change_column_default :customers, :id, -> { "snowflake_id()" }
    change_column_default :invoices, :id, -> { "segment_id('invoices')" }
    execute "INSERT INTO customers (name) VALUES ('migrated')" # the extension gives ids from here on, in this transaction
    create_table :orders, id: :bigint, default: -> { "snowflake_id()" } do |t|
      t.references :customer, null: false, foreign_key: true
      t.text :note, null: false
    end
  end

  def down
    drop_table :orders
    execute "SELECT snowflake_ids.detach('customers', 'id')"
    execute "SELECT snowflake_ids.detach('invoices', 'id')"
    disable_extension "snowflake_ids"
  end
end
