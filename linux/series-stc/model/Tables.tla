-------------------------------- MODULE Tables -------------------------------
(* SPDX-License-Identifier: GPL-2.0 *)
(* The state: page tables, VMAs, caches, faults, the writer. *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    None,                           \* a model value: nothing
    Scope,                          \* who has a cache: "mm", "vma" or "cpu"
    EntryLines,                     \* TRUE: a line covers one entry of its level; FALSE: all entries of a table
    LineCount, Ways,                \* lines per level and way; ways
    Uppers, Middles, Slots,         \* entries of the root, of an upper table, of a PMD table
    PteTables,                      \* FALSE: a PMD table's entries stand for pages; nothing below is cached anyway
    MmCount, VmaCount, CpuCount, FaultCount,
    Areas,                          \* VMAs at the start: 10 * first address + last address
    Touches, Unmaps, Maps, Splits, Moves, Forks, Exits, Collapses,   \* how often these happen
    Without                         \* rules left out, by name

Rule(name) == name \notin Without
Mms == 1 .. MmCount
Vmas == 1 .. VmaCount
Faults == 1 .. FaultCount
Least(s) == CHOOSE x \in s : \A y \in s : x <= y
Rank(x, s) == Cardinality({y \in s : y <= x})
Nth(n, s) == CHOOSE x \in s : Rank(x, s) = n

(* An address stands for what one PMD entry covers. Its path has an index for each level: the root's table is level 0, then come upper
   table, PMD table, PTE table. A table belongs to a prefix of the path, written as digits: the mm, then each index from 1 on. *)
Addresses == 1 .. Uppers * Middles * Slots
Indexes == [a \in Addresses |-> 
    <<1 + ((a - 1) \div (Slots * Middles)), 1 + (((a - 1) \div Slots) % Middles), 1 + ((a - 1) % Slots), 1>>]
Index(a, k) == Indexes[a][k + 1]    \* in the table of level k
Prefixes == [m \in 0 .. MmCount |-> [a \in Addresses |-> [k \in 0 .. 4 |->
    LET i == Indexes[a] IN
    CASE k = 0 -> m [] k = 1 -> m * 10 + i[1] [] k = 2 -> m * 100 + i[1] * 10 + i[2]
      [] k = 3 -> m * 1000 + i[1] * 100 + i[2] * 10 + i[3] [] OTHER -> m * 10000 + i[1] * 1000 + i[2] * 100 + i[3] * 10 + i[4]]]]
Prefix(m, a, k) == Prefixes[m][a][k]
Pmd == 2
Bottom == IF PteTables THEN 3 ELSE Pmd
Lowest == IF Rule("pmd-entry-afresh") THEN Pmd ELSE Bottom      \* the lowest level that is cached
Besides == [a \in Addresses |-> [k \in 1 .. 3 |-> {b \in Addresses : Prefix(0, a, k) = Prefix(0, b, k)}]]
Beside(a, k) == Besides[a][k]

(* A table's name is the prefix that it was allocated for and one more digit. A name is given again only when nothing remembers it,
   so that whoever meets a freed table is caught. Entries are named by table and index. *)
Root(m) == m * 10
Entry(table, i) == table * 10 + i
Holder(entry) == entry \div 10
Page == 0

HasIds == Scope # "mm"              \* caches have ids, and are emptied by whoever finds a wrong one
Caches == CASE Scope = "mm" -> Mms [] Scope = "vma" -> Vmas [] OTHER -> 1 .. CpuCount
Places == (1 .. Lowest) \X (0 .. LineCount * Ways - 1)
FirstPlace == <<1, 0>>
NextPlace(x) == CASE x[2] + 1 < LineCount * Ways -> <<x[1], x[2] + 1>> [] x[1] < Lowest -> <<x[1] + 1, 0>> [] OTHER -> None
NoLine == [tag |-> None, table |-> None]
EmptyCache == [x \in Places |-> NoLine]

NoVma == [m |-> 0, lo |-> 0, hi |-> 0]
NoFault == [st |-> "idle", m |-> None, a |-> None, v |-> None, by |-> None, k |-> 0, tab |-> [k \in 0 .. Bottom |-> None], hit |-> 0, new |-> None,
            c |-> None, id |-> 0, at |-> None, way |-> 0, filling |-> FALSE, kept |-> None]
NoWrite == [st |-> "idle", op |-> None, m |-> None, v |-> None, n |-> None, lo |-> 0, hi |-> 0, at |-> None]

VARIABLES
    link,           \* entries of tables, to table or page
    rss,            \* pages counted, of each mm
    vma,            \* what each VMA covers
    own,            \* the cache of each VMA (scope vma)
    line, cid,      \* lines and id of each cache
    mid, ids,       \* id of each mm; the last one given
    th,             \* faults
    wr,             \* who holds mmap_lock for writing, or has downgraded it
    left            \* budgets

memory == <<link, rss>>
areas == <<vma, own>>
caches == <<line, cid>>
numbers == <<mid, ids>>
vars == <<memory, areas, caches, numbers, th, wr, left>>

At(table, i) == IF Entry(table, i) \in DOMAIN link THEN link[Entry(table, i)] ELSE None
RECURSIVE Table(_, _, _)
\* The table of level k that the page tables lead to.
Table(m, a, k) ==
    IF k = 0 THEN Root(m)
    ELSE LET t == Table(m, a, k - 1) IN IF t = None THEN None ELSE At(t, Index(a, k - 1))
Linked(t) == t < 100 \/ \E x \in DOMAIN link : link[x] = t       \* roots are never freed
Cut(entries) == [x \in DOMAIN link \ entries |-> link[x]]
Remembered(t) ==
    \/ \E x \in DOMAIN link : link[x] = t \/ Holder(x) = t
    \/ \E c \in Caches, x \in Places : line[c][x].table = t
    \/ \E f \in Faults : th[f].new = t \/ \E k \in 1 .. Bottom : th[f].tab[k] = t
Fresh(m, a, k) == CHOOSE t \in Prefix(m, a, k) * 10 .. Prefix(m, a, k) * 10 + 9 : ~Remembered(t)

Covers(v, m, a) == vma[v].m = m /\ vma[v].lo <= a /\ a <= vma[v].hi
Covered(m, a) == \E v \in Vmas : Covers(v, m, a)
Used(m) == {v \in Vmas : vma[v].m = m}
Unused == Used(0)

(* Locks. A VMA is write-locked by waiting for its readers and stays so until mmap_lock is given up or downgraded. *)
Downgraded == wr.op = "unmap" /\ wr.st # "wait"
WriteLocked(m) == wr.m = m /\ ~Downgraded
VmaWriteLocked(v) == v \in {wr.v, wr.n} /\ wr.st # "wait" /\ ~Downgraded
Readers(v) == {f \in Faults : th[f].v = v /\ th[f].by = "vma"}
MmapReaders(m) == {f \in Faults : th[f].by = "mmap" /\ th[f].m = m}
Spend(what) == left[what] > 0 /\ left' = [left EXCEPT ![what] = @ - 1]

\* Never given before. Without the rule: of the mm_struct's own count, which begins anew with its next user.
FirstId(m) == IF Rule("unique-id") THEN m ELSE 10 * m
NewId(m, start) ==
    IF Rule("unique-id") THEN ids' = ids + 1 /\ mid' = [mid EXCEPT ![m] = ids + 1]
    ELSE mid' = [mid EXCEPT ![m] = IF start THEN FirstId(m) ELSE @ + 1] /\ UNCHANGED ids

\* VMAs of an mm at its start: the first ones for mm 1, the next ones for mm 2. The child of a fork starts with none.
StartVma(v) ==
    LET m == ((v - 1) \div Cardinality(Areas)) + 1
        range == Nth(((v - 1) % Cardinality(Areas)) + 1, Areas)
    IN  IF m > (IF Forks > 0 THEN 1 ELSE MmCount) THEN NoVma ELSE [m |-> m, lo |-> range \div 10, hi |-> range % 10]

Init ==
    /\ link = <<>> /\ rss = [m \in Mms |-> 0]
    /\ vma = [v \in Vmas |-> StartVma(v)] /\ own = [v \in Vmas |-> v]
    /\ line = [c \in Caches |-> EmptyCache] /\ cid = [c \in Caches |-> 0]
    /\ mid = [m \in Mms |-> FirstId(m)] /\ ids = MmCount
    /\ th = [f \in Faults |-> NoFault] /\ wr = NoWrite
    /\ left = [touch |-> Touches, unmap |-> Unmaps, map |-> Maps, split |-> Splits, move |-> Moves, fork |-> Forks, exit |-> Exits,
               collapse |-> Collapses]
==============================================================================
