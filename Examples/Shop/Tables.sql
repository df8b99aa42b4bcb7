CREATE TABLE "Customer" (
  "id" INTEGER PRIMARY KEY,
  "email" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "tier" INTEGER NOT NULL,
  "address" TEXT,
  "since" REAL NOT NULL
);
CREATE UNIQUE INDEX "Customer_email" ON "Customer" ("email");
CREATE TABLE "Category" (
  "id" INTEGER PRIMARY KEY,
  "name" TEXT NOT NULL,
  "parent_id" INTEGER REFERENCES "Category" ("id") ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX "Category_name" ON "Category" ("name");
CREATE INDEX "Category_parent_id" ON "Category" ("parent_id");
CREATE TABLE "Supplier" (
  "id" INTEGER PRIMARY KEY,
  "name" TEXT NOT NULL,
  "site" TEXT
);
CREATE UNIQUE INDEX "Supplier_name" ON "Supplier" ("name");
CREATE TABLE "Tag" (
  "id" INTEGER PRIMARY KEY,
  "name" TEXT NOT NULL
);
CREATE UNIQUE INDEX "Tag_name" ON "Tag" ("name");
CREATE TABLE "Product" (
  "id" INTEGER PRIMARY KEY,
  "entity" TEXT NOT NULL,
  "sku" TEXT NOT NULL,
  "title" TEXT NOT NULL,
  "price" TEXT NOT NULL,
  "stock" INTEGER NOT NULL,
  "download" TEXT,
  "weight_grams" INTEGER,
  "category_id" INTEGER REFERENCES "Category" ("id") ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
  "supplier_id" INTEGER REFERENCES "Supplier" ("id") ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX "Product_sku" ON "Product" ("sku");
CREATE INDEX "Product_title" ON "Product" ("title");
CREATE INDEX "Product_category_id" ON "Product" ("category_id");
CREATE INDEX "Product_supplier_id" ON "Product" ("supplier_id");
CREATE TABLE "Order" (
  "id" INTEGER PRIMARY KEY,
  "number" TEXT NOT NULL,
  "placed" REAL NOT NULL,
  "state" TEXT NOT NULL,
  "customer_id" INTEGER REFERENCES "Customer" ("id") ON DELETE NO ACTION DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX "Order_number" ON "Order" ("number");
CREATE INDEX "Order_state_placed" ON "Order" ("state", "placed");
CREATE INDEX "Order_customer_id" ON "Order" ("customer_id");
CREATE TABLE "OrderLine" (
  "id" INTEGER PRIMARY KEY,
  "quantity" INTEGER NOT NULL,
  "price" TEXT NOT NULL,
  "order_id" INTEGER REFERENCES "Order" ("id") ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  "product_id" INTEGER REFERENCES "Product" ("id") ON DELETE NO ACTION DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX "OrderLine_order_id_product_id" ON "OrderLine" ("order_id", "product_id");
CREATE INDEX "OrderLine_product_id" ON "OrderLine" ("product_id");
CREATE TABLE "Offer" (
  "id" INTEGER PRIMARY KEY,
  "sku" TEXT NOT NULL,
  "title" TEXT NOT NULL,
  "price" TEXT NOT NULL,
  "quantity" INTEGER NOT NULL,
  "tag" TEXT
);
CREATE TABLE "Product_tags" (
  "tag_id" INTEGER NOT NULL REFERENCES "Tag" ("id") ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  "product_id" INTEGER NOT NULL REFERENCES "Product" ("id") ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  PRIMARY KEY ("tag_id", "product_id")
) WITHOUT ROWID;
CREATE INDEX "Product_tags_product_id" ON "Product_tags" ("product_id", "tag_id");
CREATE TABLE sqlite_sequence(name,seq);
