import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@testable import BatchObjects

@Suite struct AttributeAccessTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Shop.make(in: directory)
  }

  @Test func `key paths made at run time access the properties of literal ones`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let orders = try context.fetch(Order.self, where: "id < 3")
    let (note, price) = (orders[0].note, orders[1].price)
    // More than are kept.
    for round in 0..<3_000 {
      orders[0][(\Order.self).appending(path: \.price)] = round
      #expect(orders[0][(\Order.self).appending(path: \.price)] == round)
      #expect(orders[0][(\Order.self).appending(path: \.note)] == note)
      #expect(orders[0].price == round && orders[1].price == price)
    }
  }

  @Test func `an object that moves to another context keeps its values`() async throws {
    let container = try await Shop.open(path)
    let order = Order()
    order.price = 30
    var context = ModelContext(container)
    context.insert(order)
    order.note = "new"
    context.rollback()
    #expect(order.price == 30 && order.note == "new" && order.modelContext == nil)
    order.price = 31
    context = ModelContext(container)
    context.insert(order)
    #expect(order.price == 31 && order.note == "new")
    order.state = .paid
    order.created = .distantPast
    order.isGift = false
    try context.save()
    let rows = try TestDatabase.rows(
      path,
      "SELECT price_cents, state FROM orders WHERE note = 'new'"
    )
    #expect(rows == [[.integer(31), .text("paid")]])
  }
}
