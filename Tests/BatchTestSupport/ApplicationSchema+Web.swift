extension ApplicationSchema {
  /// Begins the rows of a script; see the other part.
  private static let n =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"

  // https://github.com/jpwhite3/northwind-SQLite3/blob/main/src/create.sql
  static let northwind = ApplicationSchema(
    description: "Northwind",
    script: """
      CREATE TABLE [Customers] ([CustomerID] TEXT, [CompanyName] TEXT, [Region] TEXT,
        PRIMARY KEY (`CustomerID`));
      CREATE TABLE [Products] ([ProductID] INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        [ProductName] TEXT NOT NULL, [UnitPrice] NUMERIC NULL DEFAULT 0,
        [Discontinued] TEXT NOT NULL DEFAULT '0', CHECK ([UnitPrice] >= (0)));
      CREATE TABLE [Orders] ([OrderID] INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        [CustomerID] TEXT, [OrderDate] DATETIME, [Freight] NUMERIC NULL DEFAULT 0,
        FOREIGN KEY ([CustomerID]) REFERENCES [Customers] ([CustomerID])
        ON DELETE NO ACTION ON UPDATE NO ACTION);
      CREATE TABLE [Order Details] ([OrderID] INTEGER NOT NULL, [ProductID] INTEGER NOT NULL,
        [UnitPrice] NUMERIC NOT NULL DEFAULT 0, [Quantity] INTEGER NOT NULL DEFAULT 1,
        [Discount] REAL NOT NULL DEFAULT 0, PRIMARY KEY ("OrderID", "ProductID"),
        CHECK ([Discount] >= (0) AND [Discount] <= (1)), CHECK ([Quantity] > (0)),
        FOREIGN KEY ([OrderID]) REFERENCES [Orders] ([OrderID]));
      CREATE VIEW [Order Subtotals] AS
        SELECT [Order Details].OrderID, Sum([Order Details].UnitPrice * Quantity * (1 - Discount) * 100
          / 100) AS Subtotal FROM [Order Details] GROUP BY [Order Details].OrderID;
      INSERT INTO Customers \(n) SELECT 'C' || i, 'Firma "' || i || '" & Söhne', NULL FROM n;
      INSERT INTO Products (ProductName, UnitPrice) \(n) SELECT 'Chai ' || i, i * 1.1 FROM n;
      INSERT INTO Orders \(n) SELECT i, 'C' || i, date('2016-07-04', '+' || i || ' days'), i / 3.0
        FROM n;
      INSERT INTO [Order Details] \(n) SELECT i, p, p * 1.1, p + i % 4, p / 10.0
        FROM n, (SELECT 1 AS p UNION SELECT 2 UNION SELECT 5);
      """,
    update: .init(
      table: "Order Details",
      set: ["Discount": "[Discount] / 2", "UnitPrice": "round([UnitPrice] * 1.1, 2)"],
      condition: "Quantity > 3"
    ),
    purge: .init(table: "Order Details", condition: "ProductID = 5"),
    export: ("Order Subtotals", ["OrderID"])
  )

  // https://github.com/zotero/zotero/tree/main/resource/schema: userdata.sql and triggers.sql
  static let zotero = ApplicationSchema(
    description: "Zotero",
    script: """
      CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT NOT NULL,
        dateAdded TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, clientDateModified TIMESTAMP NOT NULL
        DEFAULT CURRENT_TIMESTAMP, libraryID INT NOT NULL, key TEXT NOT NULL,
        version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0, UNIQUE (libraryID, key));
      CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value UNIQUE);
      CREATE TABLE itemData (itemID INT, fieldID INT, valueID, PRIMARY KEY (itemID, fieldID),
        FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE,
        FOREIGN KEY (valueID) REFERENCES itemDataValues(valueID));
      CREATE INDEX itemData_valueID ON itemData (valueID);
      CREATE TABLE itemNotes (itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT,
        FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE);
      CREATE TABLE tags (tagID INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE collections (collectionID INTEGER PRIMARY KEY, collectionName TEXT NOT NULL,
        parentCollectionID INT DEFAULT NULL,
        FOREIGN KEY (parentCollectionID) REFERENCES collections(collectionID) ON DELETE CASCADE);
      CREATE TRIGGER fki_itemNotes BEFORE INSERT ON itemNotes
        FOR EACH ROW WHEN NEW.parentItemID IS NOT NULL BEGIN
        SELECT RAISE(ABORT, 'item is not a note') WHERE
          (SELECT itemTypeID FROM items WHERE itemID = NEW.parentItemID) IN (1, 14);
      END;
      CREATE TRIGGER fku_collections_parentCollectionID_libraryID
        BEFORE UPDATE ON collections FOR EACH ROW WHEN NEW.parentCollectionID = NEW.collectionID
        BEGIN SELECT RAISE(ABORT, 'collection cannot be its own parent'); END;
      INSERT INTO items \(n) SELECT i, i % 5 + 2, '2026-01-01 00:00:0' || i % 10,
        '2026-01-02', 1, 'KEY' || i, 0, 1 FROM n;
      INSERT INTO itemDataValues \(n) SELECT i, CASE i % 3 WHEN 0 THEN i ELSE 'Titel ' || i END FROM n;
      INSERT INTO itemData \(n) SELECT i, 1, i FROM n;
      INSERT INTO itemNotes \(n) SELECT i, nullif(i - 1, 0), '<p>n ' || i || '</p>' FROM n WHERE i < 30;
      INSERT INTO collections \(n) SELECT i, 'Sammlung ' || i, nullif(i / 2, 0) FROM n;
      """,
    update: .init(
      table: "items",
      set: ["synced": "0", "clientDateModified": "datetime(clientDateModified, '+1 day')"],
      condition: "itemTypeID IN (2, 3)"
    ),
    purge: .init(table: "itemNotes", condition: "parentItemID > 15"),
    export: ("itemDataValues", nil)
  )

  // https://github.com/mixxxdj/mixxx/blob/main/res/schema.xml
  static let mixxx = ApplicationSchema(
    description: "Mixxx",
    script: """
      CREATE TABLE track_locations (id INTEGER PRIMARY KEY AUTOINCREMENT,
        location varchar(512) UNIQUE, filename varchar(512), filesize INTEGER, fs_deleted INTEGER);
      CREATE TABLE library (id INTEGER PRIMARY KEY AUTOINCREMENT, artist varchar(64),
        title varchar(64), location integer REFERENCES track_locations(location),
        duration float, bpm float, rating INTEGER DEFAULT 0, timesplayed integer DEFAULT 0,
        datetime_added DATETIME DEFAULT CURRENT_TIMESTAMP, beats BLOB, mixxx_deleted integer);
      CREATE TABLE cues (id INTEGER PRIMARY KEY AUTOINCREMENT, track_id INTEGER NOT NULL
        REFERENCES library(id), type INTEGER DEFAULT 0 NOT NULL, position INTEGER DEFAULT -1 NOT NULL,
        label TEXT DEFAULT "" NOT NULL);
      CREATE TABLE Playlists (id INTEGER PRIMARY KEY, name varchar(48), hidden INTEGER DEFAULT 0);
      CREATE TABLE PlaylistTracks (id INTEGER PRIMARY KEY, playlist_id INTEGER REFERENCES Playlists(id),
        track_id INTEGER REFERENCES "library_old"(id), position INTEGER);
      CREATE TABLE crate_tracks (crate_id INTEGER NOT NULL, track_id INTEGER NOT NULL
        REFERENCES "library_old"(id), UNIQUE (crate_id, track_id));
      CREATE TABLE settings (name TEXT UNIQUE NOT NULL, value TEXT, locked INTEGER DEFAULT 0);
      INSERT INTO track_locations \(n) SELECT i, '/m/' || i || '.mp3', i || '.mp3', i * 1000, 0 FROM n;
      INSERT INTO library (artist, title, location, duration, bpm, beats, mixxx_deleted) \(n)
        SELECT 'Künstler ' || i % 9, 'T' || i, i, i * 3.25, 60 + i / 8.0, zeroblob(i), i % 2 FROM n;
      INSERT INTO cues (track_id, type) SELECT id, id % 3 FROM library;
      INSERT INTO PlaylistTracks \(n) SELECT i, 1, i, i FROM n;
      INSERT INTO crate_tracks \(n) SELECT i % 4, i FROM n;
      INSERT INTO settings VALUES ('mixxx.schema.version', '39', 0);
      """,
    update: .init(
      table: "library",
      set: ["bpm": "bpm * 2", "rating": "rating + 1"],
      condition: "bpm < 65"
    ),
    purge: .init(table: "crate_tracks", condition: "crate_id = 2"),
    export: ("library", nil)
  )

  // What `manage.py migrate` of Django 5 makes for its own applications.
  static let django = ApplicationSchema(
    description: "Django",
    script: """
      CREATE TABLE "auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
        "password" varchar(128) NOT NULL, "last_login" datetime NULL, "is_superuser" bool NOT NULL,
        "username" varchar(150) NOT NULL UNIQUE, "is_active" bool NOT NULL,
        "date_joined" datetime NOT NULL);
      CREATE TABLE "django_content_type" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
        "app_label" varchar(100) NOT NULL, "model" varchar(100) NOT NULL);
      CREATE UNIQUE INDEX "django_content_type_app_label_model_76bd3d3b_uniq"
        ON "django_content_type" ("app_label", "model");
      CREATE TABLE "django_admin_log" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
        "object_id" text NULL, "object_repr" varchar(200) NOT NULL,
        "action_flag" smallint unsigned NOT NULL CHECK ("action_flag" >= 0),
        "change_message" text NOT NULL, "content_type_id" integer NULL REFERENCES
        "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL
        REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "action_time" datetime NOT NULL);
      CREATE INDEX "django_admin_log_user_id_c564eba6" ON "django_admin_log" ("user_id");
      CREATE TABLE "django_session" ("session_key" varchar(40) NOT NULL PRIMARY KEY,
        "session_data" text NOT NULL, "expire_date" datetime NOT NULL);
      CREATE INDEX "django_session_expire_date_a5c62663" ON "django_session" ("expire_date");
      CREATE TABLE "shop_order" ("id" char(32) NOT NULL PRIMARY KEY, "total" decimal NOT NULL,
        "data" text NOT NULL CHECK ((JSON_VALID("data") OR "data" IS NULL)));
      INSERT INTO auth_user \(n) SELECT i, 'pbkdf2$' || i, NULL, i = 1, 'user' || i, 1,
        '2026-01-01 10:00:00.123456' FROM n;
      INSERT INTO django_content_type VALUES (1, 'admin', 'logentry'), (2, 'auth', 'user');
      INSERT INTO django_admin_log \(n) SELECT i, i, 'Objekt ' || i, i % 3 + 1, '[{"added": {}}]', 2, i,
        '2026-01-01 10:00:00' FROM n;
      INSERT INTO django_session \(n) SELECT printf('%040d', i * 7919 % 100), 'e30:' || i,
        date('2026-01-01', '+' || i || ' days') FROM n;
      INSERT INTO shop_order \(n) SELECT printf('%032x', i * 104729), i || '.50', json_object('n', i)
        FROM n;
      """,
    update: .init(
      table: "shop_order",
      set: ["data": "json_set(data, '$.paid', 1)", "total": "total * 2"],
      condition: "json_extract(data, '$.n') % 2 = 0"
    ),
    purge: .init(table: "django_session", condition: "expire_date < '2026-02-01'"),
    export: ("shop_order", nil)
  )

  // What `bin/rails db:migrate` of Rails 8 makes, with Active Storage and a full-text index.
  static let rails = ApplicationSchema(
    description: "Rails",
    script: """
      CREATE TABLE "schema_migrations" ("version" varchar NOT NULL PRIMARY KEY);
      CREATE TABLE "ar_internal_metadata" ("key" varchar NOT NULL PRIMARY KEY, "value" varchar,
        "created_at" datetime(6) NOT NULL, "updated_at" datetime(6) NOT NULL);
      CREATE TABLE "posts" ("id" integer PRIMARY KEY AUTOINCREMENT NOT NULL, "title" varchar,
        "body" text, "published" boolean DEFAULT FALSE NOT NULL, "created_at" datetime(6) NOT NULL,
        "updated_at" datetime(6) NOT NULL, "words" integer GENERATED ALWAYS AS (length(body)) STORED);
      CREATE TABLE "comments" ("id" integer PRIMARY KEY AUTOINCREMENT NOT NULL, "post_id" integer
        NOT NULL, "body" text, CONSTRAINT "fk_rails_2fd19c0db7" FOREIGN KEY ("post_id")
        REFERENCES "posts" ("id") ON DELETE CASCADE);
      CREATE INDEX "index_comments_on_post_id" ON "comments" ("post_id");
      CREATE TABLE "active_storage_blobs" ("id" integer PRIMARY KEY AUTOINCREMENT NOT NULL,
        "key" varchar NOT NULL, "byte_size" bigint NOT NULL, "metadata" text);
      CREATE UNIQUE INDEX "index_active_storage_blobs_on_key" ON "active_storage_blobs" ("key");
      CREATE INDEX "index_posts_on_lower_title" ON "posts" (lower(title)) WHERE published;
      CREATE VIRTUAL TABLE posts_fts USING fts5 (title, body, content = 'posts',
        content_rowid = 'id', tokenize = 'porter unicode61');
      CREATE TRIGGER posts_ai AFTER INSERT ON posts BEGIN
        INSERT INTO posts_fts (rowid, title, body) VALUES (new.id, new.title, new.body);
      END;
      CREATE TRIGGER posts_ad AFTER DELETE ON posts BEGIN
        INSERT INTO posts_fts (posts_fts, rowid, title, body)
          VALUES ('delete', old.id, old.title, old.body);
      END;
      CREATE TRIGGER posts_au AFTER UPDATE ON posts BEGIN
        INSERT INTO posts_fts (posts_fts, rowid, title, body)
          VALUES ('delete', old.id, old.title, old.body);
        INSERT INTO posts_fts (rowid, title, body) VALUES (new.id, new.title, new.body);
      END;
      INSERT INTO schema_migrations VALUES ('20260101000000'), ('20260102000000');
      INSERT INTO posts (title, body, published, created_at, updated_at) \(n) SELECT 'Post ' || i,
        'körper ' || i, i % 2, '2026-01-01 00:00:00.000001', '2026-01-01' FROM n;
      INSERT INTO comments (post_id, body) SELECT id, 'c' FROM posts WHERE id % 3 = 0;
      INSERT INTO active_storage_blobs \(n) SELECT i, 'k' || i, i * 4096, NULL FROM n;
      """,
    update: .init(
      table: "posts",
      set: ["body": "body || ' neu'", "updated_at": "'2026-02-02 00:00:00'"],
      condition: "published"
    ),
    purge: .init(table: "posts", condition: "id > 40"),
    export: ("posts", nil)
  )
}
