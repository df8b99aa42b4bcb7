CREATE TABLE "migrations" ("id" integer not null primary key autoincrement, "migration" varchar not null, "batch" integer not null);
CREATE TABLE "users" ("id" integer not null primary key autoincrement, "name" varchar not null, "email" varchar not null, "email_verified_at" datetime, "remember_token" varchar, "is_admin" tinyint(1) not null default '0', "created_at" datetime, "updated_at" datetime);
CREATE UNIQUE INDEX "users_email_unique" on "users" ("email");
CREATE TABLE "teams" ("id" integer not null primary key autoincrement, "owner_id" integer not null, "name" varchar not null, foreign key("owner_id") references "users"("id") on delete cascade);
CREATE TABLE "team_user" ("team_id" integer not null, "user_id" integer not null, foreign key("team_id") references "teams"("id"), foreign key("user_id") references "users"("id"), primary key ("team_id", "user_id"));
CREATE TABLE "matches" ("id" integer not null primary key autoincrement, "home_team_id" integer not null, "away_team_id" integer not null, "played_at" datetime, "score" double, "result" varchar check ("result" in ('home', 'away', 'draw')), foreign key("home_team_id") references "teams"("id"), foreign key("away_team_id") references "teams"("id"));
CREATE TABLE "sessions" ("id" varchar not null, "user_id" integer, "payload" text not null, "last_activity" integer not null, primary key ("id"));
CREATE TABLE "failed_jobs" ("id" integer not null primary key autoincrement, "uuid" varchar not null, "exception" text not null, "failed_at" datetime not null default CURRENT_TIMESTAMP);
CREATE TABLE "jobs" ("id" integer not null primary key autoincrement, "queue" varchar not null, "payload" text not null, "attempts" integer not null, "default" varchar, "class" varchar);
