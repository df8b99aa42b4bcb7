CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer TEXT NOT NULL,
  quantity INTEGER NOT NULL CHECK (quantity > 0),
  price TEXT NOT NULL,
  total_cents INTEGER,
  -- Grows with each change, so that an extract finds what changed since the last one.
  change INTEGER
);
CREATE INDEX orders_change ON orders (change);
CREATE INDEX orders_unpriced ON orders (id) WHERE total_cents IS NULL;
CREATE TABLE changes (last INTEGER NOT NULL);
INSERT INTO changes VALUES (0);
CREATE TRIGGER orders_inserted AFTER INSERT ON orders BEGIN
  UPDATE changes SET last = last + 1;
  UPDATE orders SET change = (SELECT last FROM changes) WHERE id = new.id;
END;
CREATE TRIGGER orders_updated AFTER UPDATE OF customer, quantity, price, total_cents ON orders BEGIN
  UPDATE changes SET last = last + 1;
  UPDATE orders SET change = (SELECT last FROM changes) WHERE id = new.id;
END;
