# The transforms with ActiveRecord: find_in_batches, a transaction per batch.
#
# usage: transform_active_record.rb DATABASE three|all

require "active_record"

path, how = ARGV
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: path)
ActiveRecord::Base.connection.execute("PRAGMA journal_mode = WAL")
ActiveRecord::Base.connection.execute("PRAGMA synchronous = NORMAL")

class Flight < ActiveRecord::Base
end

def part_of_delay(value)
  case value
  when nil then 0
  when String then value.bytesize
  else value.to_i
  end
end

total = 0
Flight.find_in_batches(batch_size: 1000) do |flights|
  Flight.transaction do
    flights.each do |flight|
      if how == "all"
        delay = flight.attributes.values.sum { |value| part_of_delay(value) } % 1000
        flight.update!(arr_delay: delay, tailnum: "#{flight.carrier}-#{flight.dest}")
      else
        delay = (flight.dep_delay || 0) + flight.distance.to_i / 10 - (flight.air_time || 0)
        flight.update!(arr_delay: delay)
      end
    end
  end
  total += flights.size
end
puts total
