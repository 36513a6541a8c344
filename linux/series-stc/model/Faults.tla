-------------------------------- MODULE Faults -------------------------------
(* SPDX-License-Identifier: GPL-2.0 *)
(* A fault: lock, lookup, walk, fill, use. Every action is one access to shared memory, or a critical section that only the holder
   of its lock can tell from one. *)
EXTENDS Tables
-----------------------------------------------------------------------------

Be(f, t) == th' = [th EXCEPT ![f] = t]

\* A line's tag is what leads to the table, and with EntryLines to its entry. Without the rule (the paper): the last index only.
Reach(k) == IF EntryLines THEN k + 1 ELSE k
Tag(t, k) == IF Rule("full-prefix-tags") THEN Prefix(0, t.a, Reach(k)) ELSE Index(t.a, Reach(k) - 1)
Place(t, k, way) == <<k, (Index(t.a, Reach(k) - 1) % LineCount) * Ways + way>>

-----------------------------------------------------------------------------
(* What a fault does next: these give its next state. *)

\* In scope cpu preemption is off during the lookup, and during the fill.
Taken(c) == Scope = "cpu" /\ Rule("preempt-off") /\ \E f \in Faults : th[f].c = c
CachesFor(t) == CASE Scope = "mm" -> {t.m} [] Scope = "vma" -> {own[t.v]} [] OTHER -> {c \in Caches : ~Taken(c)}

Lookup(t, c) == [t EXCEPT !.c = c, !.k = IF Rule("full-prefix-tags") THEN Lowest ELSE 1,
                          !.st = IF HasIds /\ Rule("id-before-lines") THEN "id" ELSE "look"]
\* The walk goes from the hit to the lowest level that is cached; then comes the fill; what is below is not cached.
Onwards(t) ==
    IF t.v = None THEN [t EXCEPT !.st = "lock"]
    ELSE IF t.k < Lowest THEN [t EXCEPT !.st = "walk"]
    ELSE IF t.hit < Lowest /\ Rule("fill-under-lock") THEN [t EXCEPT !.st = "begin"]
    ELSE [t EXCEPT !.st = IF t.k < Bottom THEN "walk" ELSE "store"]
LookedUp(t, k, table) == Onwards([t EXCEPT !.hit = k, !.k = k, !.tab = [NoFault.tab EXCEPT ![k] = table],
                                           !.c = None, !.id = 0, !.way = 0])
Missed(t) == LookedUp(t, 0, Root(t.m))
Filled(t) == IF t.v = None THEN NoFault
             ELSE Onwards([t EXCEPT !.hit = Lowest, !.filling = FALSE, !.c = None, !.id = 0, !.at = None])
FillAt(t, k) == [t EXCEPT !.st = IF Rule("lines-not-copied") THEN "fill" ELSE "copy", !.at = k, !.kept = None]

-----------------------------------------------------------------------------
(* Lock. The VMA's lock, unless it is write-locked. Any fault may use mmap_lock instead; the first stands for all. Waiting for a lock
   is not modelled: a fault begins when it has one. Faults are alike, the first idle one begins. *)

Held(f, t) == {[t EXCEPT !.v = v, !.by = "vma"] : v \in {v \in Vmas : Covers(v, t.m, t.a) /\ ~VmaWriteLocked(v)}}
              \cup (IF f > 1 \/ WriteLocked(t.m) THEN {}
                    ELSE {[t EXCEPT !.v = v, !.by = "mmap"] : v \in {v \in Vmas : Covers(v, t.m, t.a)}})

Touch(f) ==
    /\ th[f].st = "idle" /\ (\A g \in Faults : g < f => th[g].st # "idle") /\ Spend("touch")
    /\ \E m \in Mms, a \in Addresses :
          LET t == [NoFault EXCEPT !.m = m, !.a = a] IN
          IF Rule("lookup-under-lock") THEN \E held \in Held(f, t) : \E c \in CachesFor(held) : Be(f, Lookup(held, c))
          ELSE Covered(m, a) /\ Be(f, Lookup(t, m))
    /\ UNCHANGED <<memory, areas, caches, numbers, wr>>

LateLock(f) ==
    /\ th[f].st = "lock"
    /\ \/ \E held \in Held(f, th[f]) : Be(f, Onwards(held))
       \/ ~Covered(th[f].m, th[f].a) /\ ~WriteLocked(th[f].m) /\ Be(f, NoFault)         \* unmapped meanwhile
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

-----------------------------------------------------------------------------
(* The lookup: cache's id, mm's id, lines. With a wrong id it is a miss. *)

Id(f) ==
    /\ th[f].st = "id"
    /\ Be(f, [th[f] EXCEPT !.st = "compare", !.id = IF th[f].filling THEN mid[th[f].m] ELSE cid[th[f].c]])
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

Compare(f) ==
    LET t == th[f] IN
    /\ t.st = "compare" /\ ~t.filling
    /\ Be(f, IF t.id # mid[t.m] THEN Missed(t)
             ELSE IF Rule("id-before-lines") THEN [t EXCEPT !.st = "look"]
             ELSE LookedUp(t, t.hit, t.tab[t.hit]))
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

\* From the lowest level up to the first hit. Without full tags: from the top down to the first miss.
Look(f) ==
    LET t == th[f]
        k == t.k
        found == line[t.c][Place(t, k, t.way)]
        hit == found.tag = Tag(t, k)
        up == Rule("full-prefix-tags")
        last == IF up THEN hit \/ k = 1 ELSE ~hit \/ k = Lowest
        seen == IF hit THEN [t EXCEPT !.hit = k, !.tab[k] = found.table] ELSE t
    IN  /\ t.st = "look"
        /\ Be(f, IF ~hit /\ t.way + 1 < Ways THEN [t EXCEPT !.way = @ + 1]
                 ELSE IF ~last THEN [seen EXCEPT !.k = IF up THEN k - 1 ELSE k + 1, !.way = 0]
                 ELSE IF seen.hit = 0 THEN Missed(t)
                 ELSE IF HasIds /\ ~Rule("id-before-lines") THEN [seen EXCEPT !.st = "id"]
                 ELSE LookedUp(t, seen.hit, seen.tab[seen.hit]))
        /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

-----------------------------------------------------------------------------
(* The fill. Who finds the cache with another id than the mm's empties it first; two may do so at once. Then come the lines of the
   levels below the hit. *)

FillStart(f) ==
    /\ th[f].st = "begin"
    /\ \E c \in CachesFor(th[f]) :
          LET t == [th[f] EXCEPT !.c = c, !.filling = TRUE] IN
          Be(f, IF HasIds THEN [t EXCEPT !.st = "id"] ELSE FillAt(t, t.hit + 1))
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

EmptyOrder == IF Rule("lines-before-id") THEN <<"empty", "own">> ELSE <<"own", "empty">>
FillCompare(f) ==
    LET t == th[f] IN
    /\ t.st = "compare" /\ t.filling
    /\ Be(f, IF cid[t.c] = t.id THEN FillAt(t, t.hit + 1) ELSE [t EXCEPT !.st = EmptyOrder[1], !.at = FirstPlace])
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

Empty(f) ==
    LET t == th[f]
        next == NextPlace(t.at)
    IN  /\ t.st = "empty"
        /\ line' = [line EXCEPT ![t.c][t.at] = NoLine]
        /\ Be(f, IF next # None THEN [t EXCEPT !.at = next]
                 ELSE IF EmptyOrder[2] = "own" THEN [t EXCEPT !.st = "own"]
                 ELSE FillAt(t, t.hit + 1))
        /\ UNCHANGED <<memory, areas, cid, numbers, wr, left>>

Own(f) ==
    LET t == th[f] IN
    /\ t.st = "own"
    /\ cid' = [cid EXCEPT ![t.c] = t.id]
    /\ Be(f, IF EmptyOrder[2] = "own" THEN FillAt(t, t.hit + 1) ELSE [t EXCEPT !.st = "empty"])
    /\ UNCHANGED <<memory, areas, line, numbers, wr, left>>

\* Into any way. Without one-word-line a line is two words, and the table is written first.
Fill(f) ==
    LET t == th[f]
        k == t.at
        new == [tag |-> Tag(t, k), table |-> t.tab[k]]
    IN  /\ t.st = "fill"
        /\ \E way \in 0 .. (IF Rule("lines-not-copied") THEN Ways - 1 ELSE 0) :
              LET old == line[t.c][Place(t, k, way)]
                  half == ~Rule("one-word-line") /\ old.table # new.table
              IN  /\ line' = [line EXCEPT ![t.c][Place(t, k, way)] = IF half THEN [old EXCEPT !.table = new.table] ELSE new]
                  /\ Be(f, IF half THEN t ELSE IF k < Lowest THEN FillAt(t, k + 1) ELSE Filled(t))
        /\ UNCHANGED <<memory, areas, cid, numbers, wr, left>>

\* Without lines-not-copied: the first way's line is saved in the second one, before.
Copy(f) ==
    LET t == th[f] IN
    /\ t.st = "copy"
    /\ IF t.kept = None THEN Be(f, [t EXCEPT !.kept = line[t.c][Place(t, t.at, 0)]]) /\ UNCHANGED line
       ELSE line' = [line EXCEPT ![t.c][Place(t, t.at, 1)] = t.kept] /\ Be(f, [t EXCEPT !.st = "fill", !.kept = None])
    /\ UNCHANGED <<memory, areas, cid, numbers, wr, left>>

-----------------------------------------------------------------------------
(* The walk, and what it is for. *)

Walk(f) ==
    LET k == th[f].k
        child == At(th[f].tab[k], Index(th[f].a, k))
    IN  /\ th[f].st = "walk"
        /\ Be(f, IF child = None THEN [th[f] EXCEPT !.st = "install", !.new = Fresh(th[f].m, th[f].a, k + 1)]
                 ELSE Onwards([th[f] EXCEPT !.k = k + 1, !.tab[k + 1] = child]))
        /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

\* Under the lock of the page tables. Whoever comes second frees its own table and takes the winner's.
Install(f) ==
    LET k == th[f].k
        key == Entry(th[f].tab[k], Index(th[f].a, k))
        winner == IF key \in DOMAIN link THEN link[key] ELSE th[f].new
    IN  /\ th[f].st = "install"
        /\ link' = (key :> winner) @@ link
        /\ Be(f, Onwards([th[f] EXCEPT !.k = k + 1, !.tab[k + 1] = winner, !.new = None]))
        /\ UNCHANGED <<rss, areas, caches, numbers, wr, left>>

\* Under the lock of the PTE table, after a second look at the PMD entry (pte_offset_map_lock). Then the fault's lock is released.
Store(f) ==
    LET tab == th[f].tab
        key == Entry(tab[Bottom], Index(th[f].a, Bottom))
        gone == Lowest < Bottom /\ At(tab[Pmd], Index(th[f].a, Pmd)) # tab[Bottom]
        late == ~Rule("fill-under-lock") /\ th[f].hit < Lowest
    IN  /\ th[f].st = "store"
        /\ IF gone \/ key \in DOMAIN link THEN UNCHANGED memory
           ELSE link' = (key :> Page) @@ link /\ rss' = [rss EXCEPT ![th[f].m] = @ + 1]
        /\ Be(f, IF gone THEN [th[f] EXCEPT !.st = "walk", !.k = Pmd, !.tab[Bottom] = None]
                 ELSE IF late THEN [th[f] EXCEPT !.st = "begin", !.v = None, !.by = None]
                 ELSE NoFault)
        /\ UNCHANGED <<areas, caches, numbers, wr, left>>

Fault(f) ==
    \/ LateLock(f) \/ Id(f) \/ Compare(f) \/ Look(f)
    \/ FillStart(f) \/ FillCompare(f) \/ Empty(f) \/ Own(f) \/ Copy(f) \/ Fill(f)
    \/ Walk(f) \/ Install(f) \/ Store(f)
==============================================================================
