/// An address, stored as JSON.
struct Address: Codable, Hashable, Sendable {
  var street = ""
  var city = ""
}

/// How good a customer is; kept by its raw value.
enum Tier: Int, Codable, CaseIterable, Sendable {
  case new, regular, gold
}

/// The state of an order.
enum State: String, Codable, CaseIterable, Sendable {
  case open, paid, shipped
}
