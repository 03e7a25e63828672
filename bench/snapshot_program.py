# SPDX-License-Identifier: BSD-2-Clause
"""What bench/snapshot observes: the standard library, and SQLite through its module, used in as many ways as fit on a
page, so that memory is held from thousands of places. Each line read makes it do more; it keeps everything.
"""
import array, ast, base64, bz2, codecs, collections, contextlib, copy, csv, ctypes, dataclasses, datetime, decimal
import difflib, enum, fractions, functools, hashlib, importlib, inspect, io, ipaddress, itertools, json, logging, lzma
import mmap, pickle, random, re, select, socket
import sqlite3, ssl, struct, sys, threading, tokenize, unicodedata, uuid, warnings, zlib
import xml.etree.ElementTree as tree

warnings.simplefilter("ignore")
anything = lambda: contextlib.suppress(BaseException)  # what this Python or this SQLite lacks, it lacks
kept = []
SCHEMA = """
create table t(id integer primary key, a text, b real, c blob, d as (length(a)) stored, check(b >= 0), unique(a, b));
create table u(x primary key, y references t(id) on delete cascade) without rowid;
create index ia on t(a collate nocase, b desc) where b > 3; create index ie on t(substr(a, 2));
create view v as select a, count(*) n from t group by a;
create trigger g after insert on t when new.id % 3 = 0 begin insert or replace into u values(new.a, new.id);
    update t set b = b + 1 where id = new.id - 1; end;
create virtual table f using fts5(x, y);
create virtual table r using rtree(id, x0, x1);
create virtual table f4 using fts4(x);
create temp table w as select 1 one; pragma foreign_keys = on;
"""
QUERIES = """
select a, sum(b) over (partition by a order by id rows between 2 preceding and current row) from t
with recursive n(i) as (select 1 union all select i + 1 from n where i < 99) select i, (select max(b) from t where id < i) from n
select json_object('a', a, 'b', json_array(b, c is null)), json_extract('{"k":[1,2]}', '$.k[1]') from t
select t.a, u.y from t left join u on u.x = t.a where t.a like '1%' or t.b between 3 and 9 order by t.b desc, 1 limit 50
select a from t where id in (select y from u) union select x from u intersect select a from t except select 'q' order by 1
select group_concat(distinct a), total(b), avg(b), count(*) filter (where b > 4) from t group by id % 7 having count(*) > 1
select printf('%08.3f %s %q', b, a, a), hex(c), replace(a, '1', 'x'), strftime('%Y', 'now', '+1 day'), quote(c) from t
select snippet(f, 0, '<', '>', '..', 4), bm25(f) from f where f match 'three OR two*' order by rank
select * from r where x0 > 3 and x1 < 90
select * from f4 where f4 match 'one two'
select row_number() over w, lag(a) over w, ntile(4) over w, nth_value(a, 2) over w from t window w as (order by b)
explain query plan select * from t, u, v where t.id = u.y and v.a = t.a
select distinct a glob '1*', a regexp '1', case when b > 3 then 'x' else a || b end, cast(a as integer) from t order by a collate mine
pragma integrity_check
select name, sql from sqlite_master
"""


def import_everything():
    silly = {"antigravity", "this", "idlelib", "turtledemo", "turtle", "tkinter", "lib2to3", "webbrowser", "ensurepip"}
    for name in sorted(sys.stdlib_module_names - silly):
        with anything(), contextlib.redirect_stdout(io.StringIO()):
            kept.append(importlib.import_module(name))
    for module in list(sys.modules.values()):
        with anything():
            source = inspect.getsource(module)
            if len(source) < 3000:
                kept.append(
                    (ast.parse(source), compile(source, "x",
                                                "exec"), list(tokenize.generate_tokens(io.StringIO(source).readline))))


def open_database():
    db = sqlite3.connect(":memory:")
    db.create_function("regexp", 2, lambda pattern, text: re.search(pattern, text) is not None)
    db.create_collation("mine", lambda a, b: (a > b) - (a < b))
    for part in SCHEMA.split(";\ncreate"):
        with anything():
            db.executescript(part if part.startswith("\n") else "create" + part)
    return db


def fill_and_query(db, turn):
    words = ["one", "two", "three", "four"]
    for i in range(turn * 500, turn * 500 + 500):
        for row in (("insert or ignore into t(a, b, c) values(?, ?, ?)", (str(i % 997), i / 3, b"x" * (i % 40))),
                    ("insert into f values(?, ?)", (" ".join(words[k % 4] for k in range(i % 9)), "y%d" % i)),
                    ("insert into r values(?, ?, ?)", (i, i % 90, i % 90 + 3)),
                    ("insert into f4 values(?)", (words[i % 4] + " two",))):
            with anything():
                db.execute(*row)
    for query in QUERIES.strip().split("\n"):
        with anything():
            cursor = db.execute(query)
            kept.append((cursor, cursor.fetchall()))


def use_library(turn):
    data = [{"k%d" % i: [i * 0.5, str(i), {"n": None}]} for i in range(200)]
    text = json.dumps(data, indent=1)
    raw = text.encode()
    makers = (
        lambda: (data, json.loads(text), re.findall(r"(\w+)(?:\W)(\d)", text), copy.deepcopy(data), pickle.dumps(data)),
        lambda: pickle.loads(pickle.dumps(data, 0)),
        lambda: [decimal.Decimal(i) ** 30 / 7 for i in range(200)] + [fractions.Fraction(i, 7) for i in range(99)],
        lambda: [datetime.datetime(2000, 1, 1) + datetime.timedelta(i) for i in range(99)],
        lambda: (zlib.compress(raw), bz2.compress(raw), lzma.compress(raw), base64.b85encode(raw), hashlib.sha256(raw)),
        lambda: (zlib.compressobj(), lzma.LZMACompressor(), bz2.BZ2Compressor()),
        lambda: tree.fromstring("<a>" + "".join("<b c='%d'>t%d</b>" % (i, i) for i in range(300)) + "</a>"),
        lambda: (collections.OrderedDict(data[0]), collections.Counter(text), collections.deque(range(99)), 7**999),
        lambda: (array.array("d", range(99)), {*range(99)}, bytearray(300), [*itertools.permutations(range(4))]),
        lambda: (functools.partial(max, 1), functools.lru_cache(str), dict.fromkeys(range(50)), (i for i in range(3))),
        lambda: (ssl.create_default_context(), socket.socketpair(), select.epoll(), mmap.mmap(-1, 4096)),
        lambda: (threading.Thread(target=str), random.Random(turn), struct.Struct("iiq"), uuid.uuid4()),
        lambda: (list(csv.reader(io.StringIO("a,b\n1,2"))), io.BytesIO(raw), io.TextIOWrapper(io.BytesIO())),
        lambda: (list(difflib.unified_diff(["a"], ["b"])), inspect.signature(json.dumps), logging.getLogger(str(turn))),
        lambda: (
            unicodedata.normalize("NFD", "\u00e4\u00f6" * 9),
            text.translate({97: "b"}),
            text.title().swapcase().split(),
        ),
        lambda: [text.encode(c, "ignore").decode(c) for c in ("utf-7", "utf-16", "utf-32", "big5", "gb18030", "cp437")],
        lambda: (
            ctypes.create_string_buffer(99),
            ctypes.CFUNCTYPE(ctypes.c_int)(int),
            ipaddress.ip_network("10.0.0.0/28"),
        ),
        lambda: (type("C%d" % turn, (dict,), {"__slots__": ("a",)})(), enum.Enum("E%d" % turn, "a b c")),
        lambda: (dataclasses.make_dataclass("D%d" % turn, ["a", "b"]), f"{turn!r:>20} {turn:x}", "%5.2f" % turn),
    )
    for make in makers:
        with anything():
            kept.append(make())


import_everything()
database = open_database()
for turn in itertools.count():
    fill_and_query(database, turn)
    use_library(turn)
    print("ready", flush=True)
    if not sys.stdin.readline():
        break
