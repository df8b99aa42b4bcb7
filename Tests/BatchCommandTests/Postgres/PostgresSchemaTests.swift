#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// `batch schema` of a database of PostgreSQL, in the layout that it has for SQLite.
@Suite(.timeLimit(.minutes(5))) struct PostgresSchemaTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func schema(
    _ arguments: String...,
    environment: [String: String] = [:]
  ) throws -> BatchProgram.Result {
    try BatchProgram(["schema"] + arguments, in: directory, environment: environment).wait()
  }

  private func url(_ database: TestPostgres, role: String = "postgres") -> String {
    database.cluster.url(database: database.name, role: role)
  }

  @Test func `a URL that libpq cannot read is refused with status 2`() throws {
    let url = "postgres://ann@[::1"
    let result = try schema(url)
    #expect(result.status == 2)
    #expect(result.errors.contains("the URL cannot be read"), "\(result.errors)")
    try directory.write(
      JobText.update(adding: ["database": ["url": url]]),
      to: "job.json"
    )
    let plan = try BatchProgram(["plan", "job.json"], in: directory).wait()
    #expect(plan.status == 2)
    #expect(plan.errors.contains("the URL cannot be read"), "\(plan.errors)")
  }

  @Test func `schema lists tables, keys, columns, indexes, foreign keys and triggers`() throws {
    let database = try TestPostgres(
      """
      CREATE TABLE customers (id bigint PRIMARY KEY, email text NOT NULL UNIQUE, born date);
      CREATE TABLE orders (
        customer bigint REFERENCES customers ON DELETE CASCADE, number int,
        placed timestamp with time zone NOT NULL, price numeric(10,2),
        total numeric GENERATED ALWAYS AS (price * 2) STORED, PRIMARY KEY (customer, number));
      CREATE INDEX "by price" ON orders (price DESC, lower(price::text)) WHERE price > 0;
      ALTER TABLE orders ADD FOREIGN KEY (customer, number) REFERENCES orders ON UPDATE SET NULL;
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER note BEFORE INSERT OR UPDATE OF price, placed ON orders
        FOR EACH ROW EXECUTE FUNCTION note();
      CREATE TRIGGER off AFTER DELETE ON orders EXECUTE FUNCTION note();
      ALTER TABLE orders DISABLE TRIGGER off;
      CREATE VIEW cheap AS SELECT * FROM orders WHERE price < 5;
      INSERT INTO customers SELECT n, n || '@example.com' FROM generate_series(1, 1500) AS n;
      ANALYZE customers;
      """
    )
    let result = try schema(url(database))
    #expect(result.status == 0, "\(result.errors)")
    let text = result.output
    let expected = """
      database \(database.name), role postgres

      cheap (view)
        key  none: rows cannot be identified
        customer  bigint
        number    integer
        placed    timestamp with time zone
        price     numeric(10,2)
        total     numeric

      customers: about 1,500 rows
        key  id
        id     bigint not null
        email  text not null
        born   date
        unique  customers_email_key (email)

      orders: not counted before ANALYZE
        key  customer, number
        customer  bigint not null
        number    integer not null
        placed    timestamp with time zone not null
        price     numeric(10,2)
        total     numeric
        index   by price (price desc, an expression), of some rows
        refers  customer to customers (id), on delete cascade
        refers  customer, number to orders (customer, number), on update set null
        trigger note, BEFORE INSERT OR UPDATE OF price, placed
        trigger off, AFTER DELETE, disabled
      """
    #expect(text.hasPrefix("store "), "\(text)")
    #expect(text.contains(", derived from the server\nPostgreSQL "), "\(text)")
    #expect(text.hasSuffix("\(expected)\n"), "\(text)")

    let json = try JSONOutput.object(schema(url(database), "--json").output)
    #expect(UUID(uuidString: json["store"] as? String ?? "") != nil)
    let entities = try #require(json["entities"] as? [[String: Any]])
    #expect(entities.map { $0["kind"] as? String } == ["view", "table", "table"])
    #expect(entities[1]["estimatedCount"] as? Int == 1500)
    let orders = entities[2]
    #expect(orders["schema"] as? String == "public")
    let attributes = try #require(orders["attributes"] as? [[String: Any]])
    #expect(attributes.map { $0["generated"] as? Bool } == [false, false, false, false, true])
    let indexes = try #require(orders["indexes"] as? [[String: Any]])
    #expect(indexes.map { $0["origin"] as? String } == ["created", "primaryKey"])
    #expect((indexes[0]["sql"] as? String)?.hasPrefix("CREATE INDEX") == true)
    let triggers = try #require(orders["triggers"] as? [[String: Any]])
    #expect(triggers.map { $0["enabled"] as? Bool } == [true, false])
  }

  @Test func `schema prints table names as a job writes them`() throws {
    let database = try TestPostgres(
      """
      CREATE SCHEMA sales;
      CREATE TABLE sales."Order.Lines" (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
      CREATE TABLE "Order" (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
      CREATE TABLE _batch_run (id int);
      CREATE TABLE parts (id int, n int NOT NULL DEFAULT 0, PRIMARY KEY (id)) PARTITION BY RANGE (id);
      CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
      INSERT INTO parts SELECT generate_series(1, 50);
      ANALYZE;
      """
    )
    let json = try JSONOutput.object(schema(url(database), "--json").output)
    let entities = try #require(json["entities"] as? [[String: Any]])
    let names = entities.compactMap { $0["name"] as? String }
    #expect(names == ["Order", "parts", "sales.\"Order.Lines\""])
    #expect(entities[1]["kind"] as? String == "partitioned")
    #expect(entities[1]["estimatedCount"] as? Int == 50)
    for name in names {
      try directory.write(
        JobText.update(entity: name, adding: ["database": ["url": url(database)]]),
        to: "job.json"
      )
      let valid = try BatchProgram(["validate", "job.json"], in: directory).wait()
      #expect(valid.status == 0, "\(valid.errors)")
    }
  }

  @Test func `schema fits long names into 80 columns`() throws {
    let long = String(repeating: "long_name_", count: 6)
    let columns = (1...9).map { "\"\(long)\($0)\" timestamp with time zone NOT NULL" }
    let keys = (1...9).map { "\"\(long)\($0)\"" }.joined(separator: ", ")
    let database = try TestPostgres(
      """
      CREATE TABLE "\(long)" (\(columns.joined(separator: ", ")), PRIMARY KEY (\(keys)));
      CREATE TABLE "odd\u{1b}[31m\nname" (id int PRIMARY KEY);
      """
    )
    let text = try schema(url(database)).output
    #expect(text.contains("\n  \(long)1  timestamp with\n"), "\(text)")
    #expect(text.contains("odd\\u{1b}[31m name"), "\(text)")
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(text)")
  }

  @Test func `schema says what the role may not read`() throws {
    let database = try TestPostgres("CREATE TABLE t (id int PRIMARY KEY); CREATE SCHEMA closed")
    let role = "r\(database.name)"
    try database.run("CREATE ROLE \(role) LOGIN; CREATE TABLE closed.u (id int PRIMARY KEY)")
    let result = try schema(url(database, role: role))
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains(role), "\(result.output)")
    #expect(result.output.contains("\nt: not readable\n"), "\(result.output)")
    #expect(result.output.contains("\nclosed.u: not readable\n"), "\(result.output)")
    try database.run("DROP ROLE \(role)")
  }

  @Test func `schema accepts a service as an address`() throws {
    _ = try TestCluster.shared()
    let result = try schema("postgres://?service=batch-test")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("database postgres, role postgres"), "\(result.output)")
    let missing = try schema("postgres://?service=nosuch")
    #expect(missing.status == 1)
    #expect(missing.errors.contains("postgres://?service=nosuch: "), "\(missing.errors)")
  }

  @Test func `schema reports an unreachable server in one line without a password`() throws {
    let cluster = try TestCluster.shared()
    let cases: [(url: String, status: Int32, words: String)] = [
      ("postgres://nobody@127.0.0.1:1/shop", 1, "check that the server is running"),
      (cluster.url(database: "nowhere"), 2, "database \"nowhere\" does not exist"),
      ("postgres://postgres@127.0.0.1:\(cluster.port)/postgres", 2, "password"),
      ("postgres://postgres:hunter2@/postgres?host=\(cluster.folder)", 2, "contains a password"),
      ("postgres://postgres@/postgres?pass%77ord=hunter2", 2, "contains a password"),
      ("postgres://a:hunter2@[/d", 2, "contains a password"),
      ("postgres://a@[/d", 2, "the URL cannot be read"),
    ]
    for (url, status, words) in cases {
      let result = try schema(url, environment: ["PGPASSWORD": "hunter2-hunter2"])
      #expect(result.status == status, "\(result.errors)")
      #expect(result.errors.contains(words), "\(result.errors)")
      #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
      #expect(!(result.errors + result.output).contains("hunter2"), "\(result.errors)")
    }
  }
}
#endif
