#if Macros
import Testing

@Suite struct ExpansionTests {
  @Test func `a model expands to the code that one writes by hand`() {
    expectExpansion(
      of: #"""
        @Model
        public final class Order: ManagedObject {
          #Unique<Order>([\.number], [\.placed, \.customer])
          #Index<Order>([\.placed])
          @Attribute(.unique, .preserveValueOnDeletion) public var number: String
          @Attribute(originalName: "placed_at", as: .iso8601) var placed: Date
          var state: State = State.open
          var note: String?
          @Relationship(deleteRule: .cascade, inverse: \Line.order) var lines: [Line] = []
          var customer: Customer? = nil
          @Transient var isShown: Bool = false
          var total: Int { lines.count }
          static let limit = 5
        }
        """#,
      to: #"""
        public final class Order: ManagedObject {
          public var number: String {
            get {
              self[\.number]
            }
            set {
              self[\.number] = newValue
            }
          }
          var placed: Date {
            get {
              self[\.placed]
            }
            set {
              self[\.placed] = newValue
            }
          }
          var state: State {
            get {
              self[\.state]
            }
            set {
              self[\.state] = newValue
            }
          }
          var note: String? {
            get {
              self[\.note]
            }
            set {
              self[\.note] = newValue
            }
          }
          var lines: [Line] {
            get {
              self[\.lines]
            }
            set {
              self[\.lines] = newValue
            }
          }
          var customer: Customer? {
            get {
              self[\.customer]
            }
            set {
              self[\.customer] = newValue
            }
          }
          var isShown: Bool = false
          var total: Int { lines.count }
          static let limit = 5

          public static let mapping = ModelMapping(
            Order.self,
            entity: "Order",
            table: "Order",
            properties: [
              .property("number", \.number).preservedOnDeletion(),
              .property("placed", \.placed, column: "placed_at", as: .iso8601),
              .property("state", \.state, default: {
                  State.open
                }),
              .property("note", \.note),
              .property("lines", \.lines, inverse: "order", onDelete: .cascade),
              .property("customer", \.customer),
              .unique(["number"]),
              .unique(["number"]),
              .unique(["placed", "customer"]),
              .index(["placed"])
            ]
          )
        }

        extension Order: PersistentModel {
        }
        """#
    )
  }

  @Test func `an extensible class has a column that distinguishes its subclasses`() {
    expectExpansion(
      of: #"""
        @Model(table: "cars", discriminator: "kind")
        class Car: ManagedObject {
          init(_ maker: String) {
            super.init()
          }
        }
        @Model
        final class SportCar: Car {
        }
        """#,
      to: #"""
        class Car: ManagedObject {
          init(_ maker: String) {
            super.init()
          }

          class var mapping: ModelMapping {
            ownMapping
          }

          private static let ownMapping = ModelMapping(
            Car.self,
            entity: "Car",
            table: "cars",
            discriminator: (column: "kind", value: .text("Car")),
            properties: []
          )

          required init() {
            super.init()
          }
        }
        final class SportCar: Car {

          override class var mapping: ModelMapping {
            ownMapping
          }

          private static let ownMapping = ModelMapping(
            SportCar.self,
            entity: "SportCar",
            extending: Car.mapping,
            discriminator: .text("SportCar"),
            properties: []
          )
        }

        extension Car: PersistentModel {
        }
        """#
    )
  }

  @Test func `an expanded actor gets a context`() {
    expectExpansion(
      of: """
        @ModelActor
        actor Importer {
        }
        """,
      to: """
        actor Importer {

          nonisolated let modelExecutor: any SerialModelExecutor

          nonisolated let modelContainer: ModelContainer

          init(modelContainer: ModelContainer) {
            self.modelContainer = modelContainer
            self.modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(modelContainer))
          }
        }

        extension Importer: ModelActor {
        }
        """
    )
  }
}
#endif
