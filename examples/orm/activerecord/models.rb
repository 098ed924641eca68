require "active_record"

class Customer < ActiveRecord::Base
  has_many :orders
end

class Invoice < ActiveRecord::Base
  belongs_to :customer
end

class Order < ActiveRecord::Base
  belongs_to :customer
end
