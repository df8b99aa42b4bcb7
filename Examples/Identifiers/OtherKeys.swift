import BatchObjects

enum OtherKeys: Example {
  static let summary = "keys of text, of bytes and of several columns"

  static func run() async throws {
    let container = try await ModelContainer(
      configurations: ModelConfiguration(
        path: "weather.db",
        initialSchema: """
          CREATE TABLE stations (code TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
          INSERT INTO stations VALUES ('DE/1', 'Bonn'), ('7', 'Kiel');
          CREATE TABLE sensors (serial BLOB PRIMARY KEY, kind TEXT) WITHOUT ROWID;
          INSERT INTO sensors VALUES (x'00ff10', 'rain');
          CREATE TABLE readings (station TEXT, day TEXT, rain REAL, PRIMARY KEY (station, day));
          INSERT INTO readings VALUES ('7', '2026-11-20', 4.5);
          """
      )
    )
    let context = ModelContext(container)
    for entity in ["stations", "sensors", "readings"] {
      for object in try context.fetch(FetchRequest(entity: entity)) {
        let text = object.persistentModelID.uriString
        let identifier = container.identifier(for: text)
        print("\(text), read back: \(identifier == object.persistentModelID)")
      }
    }
  }
}
