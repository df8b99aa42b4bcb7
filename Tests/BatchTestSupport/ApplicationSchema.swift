/// A database as an application makes it, by the public definition of its tables and with rows of our own,
/// and work that somebody may want to do on it.
public struct ApplicationSchema: Sendable, CustomStringConvertible {
  /// An update of a table.
  public struct Update: Sendable {
    /// The table.
    public let table: String
    /// The new values, by column.
    public let set: [String: String]
    /// The rows.
    public let condition: String
    /// Other columns of these rows, which triggers set.
    public var triggered: [String] = []
  }

  /// A delete with an archive.
  public struct Purge: Sendable {
    /// The table.
    public let table: String
    /// The rows.
    public let condition: String
    /// Whether triggers delete rows of other tables, which an undo of the run does not bring back.
    public var deletesOthers = false
  }

  /// The application.
  public let description: String
  /// Whether the schema calls what only the application adds to SQLite; see ``SQLiteExtension``.
  public var needsExtension = false
  /// A script that makes the tables and rows.
  public let script: String
  /// An update of some rows.
  public let update: Update
  /// A delete of some rows.
  public let purge: Purge
  /// A table or view to export, and the columns that identify its rows, if it is a view.
  public let export: (entity: String, key: [String]?)

  /// Those of ten applications.
  public static let all = [
    anki, calibre, homeAssistant, firefox, geoPackage, northwind, zotero, mixxx, django, rails,
  ]

  /// Begins the rows of a script: `INSERT INTO t` and this and `SELECT i, … FROM n`.
  private static let n =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"

  // https://github.com/ankitects/anki/blob/main/rslib/src/storage/schema11.sql and later upgrades
  static let anki = ApplicationSchema(
    description: "Anki",
    needsExtension: true,
    script: """
      CREATE TABLE notes (id integer PRIMARY KEY, guid text NOT NULL, mid integer NOT NULL,
        mod integer NOT NULL, usn integer NOT NULL, tags text NOT NULL, flds text NOT NULL,
        sfld integer NOT NULL, csum integer NOT NULL, flags integer NOT NULL, data text NOT NULL);
      CREATE TABLE cards (id integer PRIMARY KEY, nid integer NOT NULL, did integer NOT NULL,
        ord integer NOT NULL, mod integer NOT NULL, usn integer NOT NULL, type integer NOT NULL,
        queue integer NOT NULL, due integer NOT NULL, ivl integer NOT NULL, factor integer NOT NULL);
      CREATE TABLE revlog (id integer PRIMARY KEY, cid integer NOT NULL, usn integer NOT NULL,
        ease integer NOT NULL, ivl integer NOT NULL, time integer NOT NULL);
      CREATE TABLE decks (id integer PRIMARY KEY NOT NULL, name text NOT NULL COLLATE unicase,
        mtime_secs integer NOT NULL, common blob NOT NULL);
      CREATE UNIQUE INDEX idx_decks_name ON decks (name);
      CREATE TABLE fields (ntid integer NOT NULL, ord integer NOT NULL,
        name text NOT NULL COLLATE unicase, config blob NOT NULL, PRIMARY KEY (ntid, ord))
        WITHOUT ROWID;
      CREATE UNIQUE INDEX idx_fields_name_ntid ON fields (name, ntid);
      CREATE TABLE tags (tag text NOT NULL PRIMARY KEY COLLATE unicase, usn integer NOT NULL)
        WITHOUT ROWID;
      CREATE TABLE graves (oid integer NOT NULL, type integer NOT NULL, usn integer NOT NULL,
        PRIMARY KEY (oid, type)) WITHOUT ROWID;
      CREATE INDEX ix_cards_nid ON cards (nid);
      CREATE INDEX ix_cards_sched ON cards (did, queue, due);
      CREATE INDEX ix_revlog_cid ON revlog (cid);
      INSERT INTO notes \(n) SELECT 1700000000000 + i, 'g' || i, 1, i, -1, ' tag' || i % 5 || ' ',
        'front ' || i || char(31) || 'back', 'front ' || i, i * 7, 0, '' FROM n;
      INSERT INTO cards SELECT id, id, 1, 0, mod, -1, 2, mod % 3, mod, mod * 9, 2500 FROM notes;
      INSERT INTO revlog SELECT id, id, -1, 3, ivl, 4000 FROM cards;
      INSERT INTO decks VALUES (1, 'Default', 0, x'08'), (2, 'Über::Eins', 0, x'00');
      INSERT INTO fields VALUES (1, 0, 'Front', x''), (1, 1, 'Back', x'');
      INSERT INTO tags \(n) SELECT 'Tag' || i, 0 FROM n WHERE i < 6;
      """,
    update: .init(table: "cards", set: ["ivl": "365", "usn": "-1"], condition: "ivl > 365"),
    purge: .init(table: "revlog", condition: "id < 1700000000020"),
    export: ("decks", nil)
  )

  // https://github.com/kovidgoyal/calibre/blob/master/resources/metadata_sqlite.sql
  static let calibre = ApplicationSchema(
    description: "Calibre",
    needsExtension: true,
    script: """
      CREATE TABLE books (id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL DEFAULT 'Unknown' COLLATE NOCASE, sort TEXT COLLATE NOCASE,
        timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, series_index REAL NOT NULL DEFAULT 1.0,
        path TEXT NOT NULL DEFAULT "", uuid TEXT, has_cover BOOL DEFAULT 0);
      CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE,
        sort TEXT COLLATE NOCASE, UNIQUE (name));
      CREATE TABLE books_authors_link (id INTEGER PRIMARY KEY, book INTEGER NOT NULL,
        author INTEGER NOT NULL, UNIQUE (book, author));
      CREATE TABLE comments (id INTEGER PRIMARY KEY, book INTEGER NOT NULL,
        text TEXT NOT NULL COLLATE NOCASE, UNIQUE (book));
      CREATE INDEX books_idx ON books (sort COLLATE NOCASE);
      CREATE TRIGGER books_insert_trg AFTER INSERT ON books BEGIN
        UPDATE books SET sort = title_sort(NEW.title), uuid = uuid4() WHERE id = NEW.id;
      END;
      CREATE TRIGGER books_update_trg AFTER UPDATE ON books BEGIN
        UPDATE books SET sort = title_sort(NEW.title)
          WHERE id = NEW.id AND OLD.title <> NEW.title;
      END;
      CREATE TRIGGER books_delete_trg AFTER DELETE ON books BEGIN
        DELETE FROM books_authors_link WHERE book = OLD.id;
        DELETE FROM comments WHERE book = OLD.id;
      END;
      CREATE TRIGGER fkc_comments_insert BEFORE INSERT ON comments BEGIN
        SELECT CASE WHEN (SELECT id FROM books WHERE id = NEW.book) IS NULL
        THEN RAISE(ABORT, 'Foreign key violation: book not in books') END;
      END;
      CREATE VIEW meta AS SELECT id, title, title_sort(title) AS sort,
        (SELECT group_concat(name) FROM authors WHERE authors.id IN
          (SELECT author FROM books_authors_link WHERE book = books.id)) AS authors FROM books;
      INSERT INTO books (title, path) \(n) SELECT 'The book ' || i, 'a/' || i FROM n;
      INSERT INTO authors \(n) SELECT i, 'Author ' || i, 'Author ' || i FROM n WHERE i < 9;
      INSERT INTO books_authors_link (book, author) SELECT id, id % 8 + 1 FROM books;
      INSERT INTO comments (book, text) SELECT id, 'about ' || title FROM books WHERE id % 2;
      """,
    update: .init(
      table: "books",
      set: ["title": "'The new ' || id", "path": "'z/' || substr(path, 3)"],
      condition: "id % 3 = 0",
      triggered: ["sort"]
    ),
    purge: .init(table: "books", condition: "id % 5 = 0", deletesOthers: true),
    export: ("meta", ["id"])
  )

  // https://www.home-assistant.io/docs/backend/database and its recorder/db_schema.py
  static let homeAssistant = ApplicationSchema(
    description: "Home Assistant",
    script: """
      CREATE TABLE states_meta (metadata_id INTEGER NOT NULL, entity_id VARCHAR(255),
        PRIMARY KEY (metadata_id));
      CREATE UNIQUE INDEX ix_states_meta_entity_id ON states_meta (entity_id);
      CREATE TABLE state_attributes (attributes_id INTEGER NOT NULL, hash BIGINT,
        shared_attrs TEXT, PRIMARY KEY (attributes_id));
      CREATE TABLE states (state_id INTEGER NOT NULL, entity_id CHAR(0), state VARCHAR(255),
        last_updated_ts FLOAT, old_state_id INTEGER, attributes_id INTEGER, metadata_id INTEGER,
        context_id_bin BLOB, PRIMARY KEY (state_id),
        FOREIGN KEY(old_state_id) REFERENCES states (state_id),
        FOREIGN KEY(attributes_id) REFERENCES state_attributes (attributes_id),
        FOREIGN KEY(metadata_id) REFERENCES states_meta (metadata_id));
      CREATE INDEX ix_states_old_state_id ON states (old_state_id);
      CREATE INDEX ix_states_metadata_id_last_updated_ts ON states (metadata_id, last_updated_ts);
      CREATE TABLE statistics (id INTEGER NOT NULL, created_ts FLOAT, metadata_id INTEGER,
        start_ts FLOAT, mean FLOAT, PRIMARY KEY (id));
      CREATE UNIQUE INDEX ix_statistics_statistic_id_start_ts ON statistics (metadata_id, start_ts);
      INSERT INTO states_meta \(n) SELECT i, 'sensor.s' || i FROM n WHERE i < 6;
      INSERT INTO state_attributes \(n) SELECT i, i * 99999999999, '{"unit":"°C"}' FROM n WHERE i < 6;
      INSERT INTO states \(n) SELECT i, NULL, i / 2.0, 1.7e9 + i / 3.0, nullif(i - 1, 0), i % 5 + 1,
        i % 5 + 1, randomblob(16) FROM n;
      INSERT INTO statistics \(n) SELECT i, i, i % 5, i / 5 * 300.5, i / 7.0 FROM n;
      """,
    update: .init(
      table: "states",
      set: ["old_state_id": "NULL", "state": "round(state, 1)"],
      condition: "last_updated_ts < 1700000010.5 AND old_state_id > 0"
    ),
    purge: .init(table: "statistics", condition: "start_ts < 1500"),
    export: ("states", nil)
  )

  // https://searchfox.org/mozilla-central/source/toolkit/components/places/nsPlacesTables.h
  static let firefox = ApplicationSchema(
    description: "Firefox",
    script: """
      CREATE TABLE moz_origins (id INTEGER PRIMARY KEY, prefix TEXT NOT NULL, host TEXT NOT NULL,
        frecency INTEGER NOT NULL, UNIQUE (prefix, host));
      CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR,
        rev_host LONGVARCHAR, visit_count INTEGER DEFAULT 0, hidden INTEGER DEFAULT 0 NOT NULL,
        typed INTEGER DEFAULT 0 NOT NULL, frecency INTEGER DEFAULT -1 NOT NULL,
        last_visit_date INTEGER, guid TEXT, url_hash INTEGER DEFAULT 0 NOT NULL,
        origin_id INTEGER REFERENCES moz_origins(id));
      CREATE INDEX moz_places_url_hashindex ON moz_places (url_hash);
      CREATE UNIQUE INDEX moz_places_guid_uniqueindex ON moz_places (guid);
      CREATE TABLE moz_historyvisits (id INTEGER PRIMARY KEY, from_visit INTEGER,
        place_id INTEGER, visit_date INTEGER, visit_type INTEGER, session INTEGER);
      CREATE INDEX moz_historyvisits_placedateindex ON moz_historyvisits (place_id, visit_date);
      CREATE TABLE moz_inputhistory (place_id INTEGER NOT NULL, input LONGVARCHAR NOT NULL,
        use_count INTEGER, PRIMARY KEY (place_id, input));
      CREATE TABLE moz_meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
      INSERT INTO moz_origins \(n) SELECT i, 'https://', 'site' || i || '.example', i FROM n
        WHERE i < 10;
      INSERT INTO moz_places \(n) SELECT i, 'https://site' || (i % 9 + 1) || '.example/' || i,
        'Seite ' || i || ' – ünï', 'elpmaxe.', i % 7, 0, 0, i, 1700000000000000 + i, 'guid' || i,
        i * 47359719085711, i % 9 + 1 FROM n;
      INSERT INTO moz_historyvisits SELECT id, 0, id, last_visit_date, 1, 0 FROM moz_places;
      INSERT INTO moz_inputhistory SELECT id, 'si', 1 FROM moz_places WHERE id % 4 = 0;
      INSERT INTO moz_meta VALUES ('origin_frecency_count', 12), ('x', 1.5), ('b', x'00ff');
      """,
    update: .init(
      table: "moz_places",
      set: ["frecency": "-1", "title": "upper(title)"],
      condition: "visit_count < 3"
    ),
    purge: .init(table: "moz_inputhistory", condition: "place_id > 20"),
    export: ("moz_meta", nil)
  )

  // https://www.geopackage.org/spec131, annex C and F.3
  static let geoPackage = ApplicationSchema(
    description: "GeoPackage",
    needsExtension: true,
    script: """
      CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL,
        identifier TEXT UNIQUE, last_change DATETIME NOT NULL DEFAULT
        (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), min_x DOUBLE, srs_id INTEGER);
      CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL,
        geometry_type_name TEXT NOT NULL, z TINYINT NOT NULL,
        CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
        CONSTRAINT uk_gc_table_name UNIQUE (table_name),
        CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents (table_name));
      CREATE TABLE trees (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom POINT, kind TEXT(20),
        height DOUBLE);
      CREATE VIRTUAL TABLE rtree_trees_geom USING rtree(id, minx, maxx, miny, maxy);
      CREATE TRIGGER rtree_trees_geom_insert AFTER INSERT ON trees
        WHEN (new.geom NOT NULL AND NOT ST_IsEmpty(NEW.geom)) BEGIN
        INSERT OR REPLACE INTO rtree_trees_geom VALUES (NEW.fid, ST_MinX(NEW.geom),
          ST_MaxX(NEW.geom), ST_MinY(NEW.geom), ST_MaxY(NEW.geom));
      END;
      CREATE TRIGGER rtree_trees_geom_update6 AFTER UPDATE OF geom ON trees
        WHEN OLD.fid = NEW.fid AND (NEW.geom NOTNULL AND NOT ST_IsEmpty(NEW.geom)) BEGIN
        UPDATE rtree_trees_geom SET minx = ST_MinX(NEW.geom), maxx = ST_MaxX(NEW.geom),
          miny = ST_MinY(NEW.geom), maxy = ST_MaxY(NEW.geom) WHERE id = NEW.fid;
      END;
      CREATE TRIGGER rtree_trees_geom_delete AFTER DELETE ON trees WHEN old.geom NOT NULL BEGIN
        DELETE FROM rtree_trees_geom WHERE id = OLD.fid;
      END;
      INSERT INTO gpkg_contents VALUES ('trees', 'features', 'trees', '2026-01-01', 0, 4326);
      INSERT INTO gpkg_geometry_columns VALUES ('trees', 'geom', 'POINT', 0);
      INSERT INTO trees (geom, kind, height) \(n)
        SELECT gpkg_point(i, i / 2.0), CASE i % 3 WHEN 0 THEN 'oak' ELSE 'elm' END, i / 4.0 FROM n;
      """,
    update: .init(
      table: "trees",
      set: ["geom": "gpkg_point(ST_MinX(geom) + 100, 7)", "height": "height + 1"],
      condition: "kind = 'oak'"
    ),
    purge: .init(table: "trees", condition: "height > 10"),
    export: ("trees", nil)
  )
}
