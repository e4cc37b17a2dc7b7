/* SQLite on a database in memory: n rows of sales go in; grouping, a join, a window over a subquery, changes under an
   index and a rollback follow. What comes out is compared with the same sums made here. */
#include "driver.h"
#include "sqlite3.h"

/* SQLite wants an operating system, if only to say that there are no files, nor any time or chance. */
static int no_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *got) { return SQLITE_CANTOPEN; }
static int no_delete(sqlite3_vfs *v, const char *name, int sync) { return SQLITE_IOERR_DELETE; }
static int no_access(sqlite3_vfs *v, const char *name, int flags, int *yes) { return *yes = 0, SQLITE_OK; }
static int no_path(sqlite3_vfs *v, const char *name, int room, char *out) { return SQLITE_CANTOPEN; }
static int no_chance(sqlite3_vfs *v, int n, char *out) { return memset(out, 0x5a, (size_t)n), n; }
static int no_sleep(sqlite3_vfs *v, int us) { return 0; }
static int no_time(sqlite3_vfs *v, double *day) { return *day = 2451544.5, SQLITE_OK; }

int sqlite3_os_init(void) {
  static sqlite3_vfs vfs = {
      .iVersion = 1, .szOsFile = sizeof(sqlite3_file), .mxPathname = 64, .zName = "nothing", .xOpen = no_open,
      .xDelete = no_delete, .xAccess = no_access, .xFullPathname = no_path, .xRandomness = no_chance,
      .xSleep = no_sleep, .xCurrentTime = no_time,
  };
  return sqlite3_vfs_register(&vfs, 1);
}
int sqlite3_os_end(void) { return SQLITE_OK; }

static sqlite3 *db;
static uint64_t sum = SUM0;

static void must(int holds, const char *what) {
  if (holds) return;
  out_str("failed: ");
  out_str(what);
  out_str(db ? ": " : "");
  out_str(db ? sqlite3_errmsg(db) : "");
  out_str("\n");
  out_flush();
  exit(1);
}

static sqlite3_stmt *prepare(const char *sql) {
  sqlite3_stmt *s = 0;
  must(sqlite3_prepare_v2(db, sql, -1, &s, 0) == SQLITE_OK, sql);
  return s;
}

/* Runs one statement; all text that comes out goes into the sum. Returns the first column of the last row. */
static int64_t query(const char *sql) {
  sqlite3_stmt *s = prepare(sql);
  int64_t first = 0;
  int status;
  while ((status = sqlite3_step(s)) == SQLITE_ROW) {
    first = sqlite3_column_int64(s, 0);
    for (int i = 0; i < sqlite3_column_count(s); i++) {
      const char *text = (const char *)sqlite3_column_text(s, i);
      sum = text ? sum_bytes(sum, text, (uint32_t)strlen(text) + 1) : sum_value(sum, 1);
    }
  }
  must(status == SQLITE_DONE, sql);
  sqlite3_finalize(s);
  return first;
}

int main(int argc, char **argv) {
  uint32_t n = size_argument(argc, argv, 40000);
  must(sqlite3_open(":memory:", &db) == SQLITE_OK, "open");
  query("create table shop(id integer primary key, name text not null, rate real)");
  query("create table sale(id integer primary key, shop int, amount int, note text)");
  query("create index by_shop on sale(shop, amount)");
  query("with recursive k(i) as (values(1) union all select i + 1 from k where i < 40) "
        "insert into shop select i, printf('shop %02d', i), 1 + i / 8.0 from k");

  /* Rows, and what we know about them. */
  char *seen = malloc(4 * (size_t)n + 4);
  int32_t *amounts = (int32_t *)seen;
  must(seen != 0, "memory");
  int64_t total = 0, of_seven = 0, kept = 0;
  uint64_t chance = random_seed(19);
  sqlite3_stmt *insert = prepare("insert into sale(id, shop, amount, note) values(?1, ?2, ?3, ?4)");
  query("begin");
  for (uint32_t i = 0; i < n; i++) {
    uint32_t r = random_next(&chance);
    int shop = 1 + (int)(r % 40), amount = (int)(r >> 8) % 10000;
    char note[] = "note aaaa";
    for (int k = 0; k < 4; k++) note[5 + k] += (r >> (8 + 3 * k)) % 8;
    sqlite3_bind_int(insert, 1, (int)i);
    sqlite3_bind_int(insert, 2, shop);
    sqlite3_bind_int(insert, 3, amount);
    sqlite3_bind_text(insert, 4, note, -1, SQLITE_TRANSIENT);
    must(sqlite3_step(insert) == SQLITE_DONE, "insert");
    sqlite3_reset(insert);
    amounts[i] = amount;
    total += amount;
    if (shop == 7) of_seven += amount;
    if (i % 4 != 1) kept += i % 3 == 0 ? amount * 2 + 1 : amount;
  }
  query("commit");
  sqlite3_finalize(insert);

  int ok = 1;
  int64_t got = query("select sum(amount), count(*), min(note), max(note) from sale");
  ok &= got == total;
  figure("total", (uint64_t)got);
  got = query("select sum(amount) from sale where shop = 7");
  ok &= got == of_seven;
  figure("shop 7", (uint64_t)got);
  got = query("select sum(amount), name, count(*), round(avg(amount * rate), 3) from shop join sale on shop.id = sale.shop "
              "group by shop.id having count(*) > 1 order by 1 desc, name");
  figure("least by shop", (uint64_t)got);
  got = query("select count(*) from sale a join sale b on b.id = a.id + 1 where a.note < b.note and b.note like '%a_b%'");
  figure("neighbours", (uint64_t)got);
  query("select shop, id, rank() over (partition by shop order by amount desc, id) as place from "
        "(select * from sale where amount % 7 = 3) order by place, shop limit 50");

  query("begin");
  query("delete from sale where shop between 3 and 30");
  query("rollback");
  query("update sale set amount = amount * 2 + 1, note = upper(note) || '.' where id % 3 = 0");
  query("delete from sale where id % 4 = 1");
  got = query("select sum(amount) from sale indexed by by_shop");
  ok &= got == kept;
  figure("kept", (uint64_t)got);
  sqlite3_stmt *one = prepare("select amount from sale where id = ?");
  for (uint32_t i = 0; i < n; i += 1 + n / 300) {
    sqlite3_bind_int(one, 1, (int)i);
    int found = sqlite3_step(one) == SQLITE_ROW;
    ok &= found == (i % 4 != 1);
    if (found) ok &= sqlite3_column_int(one, 0) == (i % 3 == 0 ? amounts[i] * 2 + 1 : amounts[i]);
    sqlite3_reset(one);
  }
  sqlite3_finalize(one);
  sqlite3_stmt *integrity = prepare("pragma integrity_check");
  must(sqlite3_step(integrity) == SQLITE_ROW, "integrity_check");
  ok &= strcmp((const char *)sqlite3_column_text(integrity, 0), "ok") == 0;
  sqlite3_finalize(integrity);
  ok &= sqlite3_close(db) == SQLITE_OK;
  free(seen);
  return verdict("sqlite", n, sum, ok);
}
