class Initial < ActiveRecord::Migration[6.1] # the tables before the extension
  def change
    create_table(:customers) { |t| t.text :name, null: false }
    create_table(:invoices) { |t| t.references :customer, null: false, foreign_key: true }
  end
end
