PRAGMA application_id = 1731423852;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE answers (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    request TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    person TEXT NOT NULL,
    session TEXT NOT NULL,
    node TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('label', 'unknown', 'skip')),
    label TEXT CHECK ((label IS NOT NULL) = (kind = 'label')),
    note TEXT NOT NULL,
    how TEXT NOT NULL CHECK (how IN ('chosen', 'random', 'correction')),
    guess TEXT,
    sure REAL,
    undone TEXT
);
INSERT INTO "answers" VALUES(1,'r1','2026-11-18T18:37:00.915+00:00','ann','s1','p7','label','tea','a note','chosen','art',0.5,NULL);
CREATE TABLE classes (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO "classes" VALUES(1,'art');
INSERT INTO "classes" VALUES(2,'law');
INSERT INTO "classes" VALUES(3,'tea');
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "facts" VALUES('title','"people"');
CREATE TABLE leases (
    node TEXT PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    until REAL NOT NULL,
    how TEXT NOT NULL,
    guess TEXT,
    sure REAL
) WITHOUT ROWID;
CREATE TABLE verdicts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    request TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    person TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('keep', 'remove', 'add', 'leave'))
);
INSERT INTO "verdicts" VALUES(1,'r2','2026-11-18T18:37:00.919+00:00','ann','p1','p2','remove');
CREATE INDEX answers_of_nodes ON answers (node);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('answers',1);
INSERT INTO "sqlite_sequence" VALUES('verdicts',1);
COMMIT;
