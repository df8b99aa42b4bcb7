# Work by objects with ActiveRecord: find_in_batches, a transaction per batch.
#
# usage: contexts_active_record.rb DATABASE read|update|insert|delete

require "active_record"

path, how = ARGV
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: path)
ActiveRecord::Base.connection.execute("PRAGMA journal_mode = WAL")
ActiveRecord::Base.connection.execute("PRAGMA synchronous = NORMAL")

class Flight < ActiveRecord::Base
end

class Copy < ActiveRecord::Base
end

total = 0
Flight.select(:id, :dep_delay, :arr_delay, :air_time, :distance).find_in_batches(batch_size: 1000) do |flights|
  Flight.transaction do
    flights.each do |flight|
      case how
      when "read" then (flight.dep_delay || 0) + (flight.air_time || 0)
      when "update"
        delay = (flight.dep_delay || 0) + flight.distance.to_i / 10 - (flight.air_time || 0)
        flight.update!(arr_delay: delay)
      when "insert"
        Copy.create!(delay: flight.dep_delay, air_time: flight.air_time, distance: flight.distance)
      else flight.destroy!
      end
    end
  end
  total += flights.size
end
puts total
