PRAGMA application_id = 1731423854;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE environments (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    software TEXT NOT NULL,
    hardware TEXT NOT NULL
);
INSERT INTO "environments" VALUES(1,'e417f9382f564a10f419e4bb','{"g3nn":"0.2.0"}','{"device":"cpu"}');
CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    dataset TEXT NOT NULL,
    setting TEXT NOT NULL,
    model TEXT NOT NULL,
    objective TEXT NOT NULL,
    options TEXT NOT NULL
);
INSERT INTO "points" VALUES(1,'fb38e7f085cad06d0756b715','cora','standard','gcn','elbo','{"eta":1.0}');
CREATE TABLE trials (
    point INTEGER NOT NULL REFERENCES points,
    stage TEXT NOT NULL CHECK (stage IN ('select', 'trial')),
    seed INTEGER NOT NULL,
    split TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('stopped', 'limit', 'diverged', 'failed')),
    val_loss REAL,
    val_accuracy REAL,
    test_accuracy REAL,
    epochs INTEGER NOT NULL,
    best_epoch INTEGER NOT NULL,
    error TEXT NOT NULL,
    seconds REAL NOT NULL,
    environment INTEGER NOT NULL REFERENCES environments,
    evidence BLOB,
    digest BLOB NOT NULL,
    PRIMARY KEY (point, stage, seed),
    CHECK (stage = 'trial' OR (test_accuracy IS NULL AND evidence IS NULL))
) WITHOUT ROWID;
INSERT INTO "trials" VALUES(1,'trial',3,'abababababababab','stopped',0.3,0.75,6.66666666666666629659e-01,9,7,'',0.5,1,NULL,X'A435DFA0CDE15E47603F7676');
COMMIT;
