class Extension < ActiveRecord::Migration[6.1] # of its own: a new server gives snowflake ids once this is committed
  def change
    enable_extension "snowflake_ids"
  end
end
