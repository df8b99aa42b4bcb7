/// Job files that between them have every key there is.
enum CompleteJob {
  static let update = """
    {
      "version": 1,
      "name": "reprice",
      "description": "Gives every order without a price its price",
      "database": {
        "path": "shop.db", "busyTimeout": "250ms", "synchronous": "full",
        "journalMode": "keep", "foreignKeys": false, "readOnly": false, "coreData": "overwrite",
        "extensions": ["mod_spatialite", "lib/own.so"]
      },
      "parameters": {
        "before": { "type": "date", "required": true },
        "factor": { "type": "real", "default": 2 },
        "token": { "type": "text", "secret": true, "required": false },
        "now": { "type": "timestamp", "default": "$runStartedAt" },
        "run": { "type": "text", "default": "$runID" }
      },
      "source": {
        "entity": "orders",
        "where": "price IS NULL AND day < :before",
        "orderBy": ["-priority", "id"],
        "limit": 1000000,
        "everything": false,
        "recheck": "fail",
        "key": ["id"]
      },
      "action": {
        "type": "update",
        "set": { "price": "cost * :factor", "changed": ":now", "a \\"b\\"": "NULL" },
        "unchanged": "write"
      },
      "chunk": { "size": 500, "target": "100ms", "minimum": 50, "maximum": 2000 },
      "workers": 3,
      "history": 20,
      "checkpoint": {
        "path": "state/reprice.batch", "interval": "1.5s", "list": "file", "keepRunIDs": "90d"
      }
    }
    """

  static let server = """
    {
      "version": 1,
      "name": "reprice",
      "database": { "url": "postgres://batch@db.example.com/shop", "lease": "30s" },
      "source": { "entity": "orders", "everything": true },
      "action": { "type": "delete" },
      "throttle": { "vacuum": true }
    }
    """

  static let service = """
    {
      "version": 1,
      "name": "reprice",
      "database": { "service": "shop", "busyTimeout": "2s" },
      "source": { "entity": "orders", "everything": true },
      "action": { "type": "delete" }
    }
    """

  static let parts = """
    {
      "version": 1,
      "name": "orders",
      "database": { "path": "shop.db" },
      "source": { "entity": "orders", "everything": true },
      "action": { "type": "export", "folder": "orders", "format": "csv", "maximumFile": "256MB" }
    }
    """

  static let load = """
    {
      "version": 1,
      "name": "import",
      "database": { "path": "shop.db" },
      "action": {
        "type": "load",
        "files": "in/orders-*.csv",
        "format": "csv",
        "into": "orders",
        "columns": { "id": "id", "cents": "round(price * 100)" },
        "names": ["id", "price"],
        "types": { "price": "real" },
        "onConflict": { "update": ["id"] },
        "null": "NA",
        "delimiter": ";"
      }
    }
    """

  static let delete = """
    {
      "version": 1,
      "name": "purge",
      "database": { "path": "/data/shop.db" },
      "source": { "entity": "orders", "identifiers": "some.ids" },
      "action": { "type": "delete", "archive": { "entity": "orders_archive", "create": true } },
      "retry": { "limit": 5, "backoff": "10ms", "maximumBackoff": "1s" },
      "skip": { "limit": 100, "ratio": 0.01 },
      "throttle": {
        "identifiersPerSecond": 5000, "sleepRatio": 0.2, "maximumWAL": "32MB",
        "minimumFreeDisk": "1GB", "flagFile": "hold",
        "window": { "hours": "22:00-06:00", "otherwise": "stop" }
      },
      "limits": { "runtime": "6h" },
      "undo": { "keep": "30d" },
      "approval": { "by": 1 },
      "canary": { "rows": 500, "then": "5m", "stopAfter": "1%" },
      "afterwards": "vacuum",
      "hooks": {
        "onStart": ["./start"], "onFinish": ["./finish", "well"], "onFailure": ["./fail"],
        "onThrottle": ["./hold"], "onStop": ["./stop"], "onCancel": ["./cancel"],
        "onRefuse": ["./refuse"], "onKill": ["./kill"]
      },
      "report": { "path": "run.html" }
    }
    """

  static let export = """
    {
      "version": 1,
      "name": "export",
      "database": { "path": "shop.db" },
      "source": { "entity": "orders" },
      "action": {
        "type": "export", "file": "orders.csv", "format": "csv",
        "columns": ["id", "price"], "overwrite": true, "invalidText": "fail",
        "delimiter": ";", "null": "NA", "bom": true, "quote": "all",
        "compression": "gzip"
      }
    }
    """

  static let increment = """
    {
      "version": 1,
      "name": "changes",
      "database": { "path": "shop.db" },
      "source": { "entity": "orders", "since": { "column": "updated_at", "lag": "10m" } },
      "action": { "type": "export", "file": "orders-{runStartedAt}.csv", "format": "csv" }
    }
    """

  static let changes = """
    {
      "version": 1,
      "name": "feed",
      "database": { "path": "shop.db" },
      "source": { "entity": "orders", "changes": "log" },
      "action": { "type": "export", "file": "feed-{runID}.csv", "format": "csv" }
    }
    """

  static let parquet = """
    {
      "version": 1,
      "name": "export",
      "database": { "path": "shop.db" },
      "source": { "entity": "orders" },
      "action": {
        "type": "export", "file": "orders.parquet", "format": "parquet",
        "types": { "price": "decimal(10,2)" }, "onMismatch": "null", "compression": "lz4"
      }
    }
    """

  static let query = """
    {
      "version": 1,
      "name": "sales",
      "database": { "path": "shop.db" },
      "source": {
        "query": "SELECT customer, sum(price) AS total FROM orders GROUP BY customer",
        "key": ["customer"], "where": "total > 0"
      },
      "action": { "type": "export", "file": "sales.ndjson", "format": "ndjson", "json": ["customer"] }
    }
    """

  static let transform = """
    {
      "version": 1,
      "name": "gain",
      "database": { "path": "shop.db" },
      "source": { "entity": "orders", "everything": true },
      "action": {
        "type": "transform", "columns": ["cost", "rate"], "writes": ["price"],
        "handler": "reprice", "timeout": "5s", "invalidText": "fail"
      }
    }
    """

  static let command = """
    {
      "version": 1,
      "name": "gain",
      "database": { "path": "shop.db" },
      "source": { "entity": "orders", "everything": true },
      "action": {
        "type": "transform", "columns": ["cost"], "writes": ["price"],
        "command": ["python3", "reprice.py"]
      }
    }
    """
}
