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
Place(t, k) == <<k, Index(t.a, Reach(k) - 1) % LineCount>>

-----------------------------------------------------------------------------
(* What a fault does next: these give its next state. *)

\* In scope cpu preemption is off during the lookup, and during the fill.
Taken(c) == Scope = "cpu" /\ Rule("preempt-off") /\ \E f \in Faults : th[f].c = c
CachesFor(t) == CASE Scope = "mm" -> {t.m} [] Scope = "vma" -> {own[t.v]} [] OTHER -> {c \in Caches : ~Taken(c)}

Lookup(t, c) == [t EXCEPT !.c = c, !.k = IF Rule("full-prefix-tags") THEN Lowest ELSE 1,
                          !.st = IF HasIds /\ Rule("id-before-lines") THEN "id" ELSE "look"]
LookedUp(t) == [t EXCEPT !.k = t.hit, !.tab[0] = IF t.hit = 0 THEN Root(t.m) ELSE None, !.c = None, !.id = 0]
\* The walk goes from the hit to the lowest level that is cached; then comes the fill; what is below is not cached.
Onwards(t) ==
    IF t.v = None THEN [t EXCEPT !.st = "lock"]
    ELSE IF t.k < Lowest THEN [t EXCEPT !.st = "walk"]
    ELSE IF t.hit < Lowest /\ Rule("fill-under-lock") THEN [t EXCEPT !.st = "begin"]
    ELSE [t EXCEPT !.st = IF t.k < Bottom THEN "walk" ELSE "store"]
Filled(t) == IF t.v = None THEN NoFault
             ELSE Onwards([t EXCEPT !.hit = Lowest, !.filling = FALSE, !.c = None, !.id = 0, !.at = None])
\* The cache has the right id. Without id-before-lines the lines were read already.
Agreed(t) == IF t.filling THEN [t EXCEPT !.st = "fill", !.at = t.hit + 1]
             ELSE IF Rule("id-before-lines") THEN [t EXCEPT !.st = "look", !.at = None]
             ELSE Onwards([LookedUp(t) EXCEPT !.at = None])

-----------------------------------------------------------------------------
(* Lock. The VMA's lock, unless it is write-locked. Any fault may use mmap_lock instead; one of them stands for all. Waiting for a
   lock is not modelled: a fault begins when it has one. *)

Held(f, t) == {[t EXCEPT !.v = v, !.by = "vma"] : v \in {v \in Vmas : Covers(v, t.m, t.a) /\ ~VmaWriteLocked(v)}}
              \cup (IF f < FaultCount \/ WriteLocked(t.m) THEN {}
                    ELSE {[t EXCEPT !.v = v, !.by = "mmap"] : v \in {v \in Vmas : Covers(v, t.m, t.a)}})

Touch(f) ==
    /\ th[f].st = "idle" /\ Spend("touch")
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
(* The cache. Whoever finds its id wrong empties it; two may do so at once. *)

Id(f) ==
    /\ th[f].st = "id"
    /\ Be(f, [th[f] EXCEPT !.id = mid[th[f].m], !.st = "compare"])
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

EmptyOrder == IF Rule("lines-before-id") THEN <<"empty", "own">> ELSE <<"own", "empty">>
Compare(f) ==
    LET late == ~th[f].filling /\ ~Rule("id-before-lines") IN
    /\ th[f].st = "compare"
    /\ Be(f, IF cid[th[f].c] = th[f].id THEN Agreed(th[f])
             ELSE [th[f] EXCEPT !.st = EmptyOrder[1], !.at = FirstPlace, !.hit = IF late THEN 0 ELSE @])
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

Empty(f) ==
    LET next == NextPlace(th[f].at) IN
    /\ th[f].st = "empty"
    /\ line' = [line EXCEPT ![th[f].c][th[f].at] = NoLine]
    /\ Be(f, IF next # None THEN [th[f] EXCEPT !.at = next]
             ELSE IF EmptyOrder[2] = "own" THEN [th[f] EXCEPT !.st = "own", !.at = None]
             ELSE Agreed(th[f]))
    /\ UNCHANGED <<memory, areas, cid, numbers, wr, left>>

Own(f) ==
    /\ th[f].st = "own"
    /\ cid' = [cid EXCEPT ![th[f].c] = th[f].id]
    /\ Be(f, IF EmptyOrder[2] = "own" THEN Agreed(th[f]) ELSE [th[f] EXCEPT !.st = "empty"])
    /\ UNCHANGED <<memory, areas, line, numbers, wr, left>>

\* From the lowest level up to the first hit. Without full tags: from the top down to the first miss.
Look(f) ==
    LET k == th[f].k
        found == line[th[f].c][Place(th[f], k)]
        hit == found.tag = Tag(th[f], k)
        up == Rule("full-prefix-tags")
        last == IF up THEN hit \/ k = 1 ELSE ~hit \/ k = Lowest
        seen == IF hit THEN [th[f] EXCEPT !.hit = k, !.tab = [NoFault.tab EXCEPT ![k] = found.table]] ELSE th[f]
    IN  /\ th[f].st = "look"
        /\ Be(f, IF ~last THEN [seen EXCEPT !.k = IF up THEN k - 1 ELSE k + 1]
                 ELSE IF HasIds /\ ~Rule("id-before-lines") THEN [seen EXCEPT !.st = "id"]
                 ELSE Onwards(LookedUp(seen)))
        /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

FillStart(f) ==
    /\ th[f].st = "begin"
    /\ \E c \in CachesFor(th[f]) :
          LET t == [th[f] EXCEPT !.c = c, !.filling = TRUE] IN
          Be(f, IF Scope = "cpu" /\ Rule("fill-checks-id") THEN [t EXCEPT !.st = "id"] ELSE [t EXCEPT !.st = "fill", !.at = t.hit + 1])
    /\ UNCHANGED <<memory, areas, caches, numbers, wr, left>>

\* One line for each level below the hit. Without the rule a line is two words, and the table is written first.
Fill(f) ==
    LET k == th[f].at
        new == [tag |-> Tag(th[f], k), table |-> th[f].tab[k]]
        half == ~Rule("one-word-line") /\ line[th[f].c][Place(th[f], k)].table # new.table
    IN  /\ th[f].st = "fill"
        /\ line' = [line EXCEPT ![th[f].c][Place(th[f], k)] = IF half THEN [@ EXCEPT !.table = new.table] ELSE new]
        /\ Be(f, IF half THEN th[f] ELSE IF k < Lowest THEN [th[f] EXCEPT !.at = k + 1] ELSE Filled(th[f]))
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
    \/ LateLock(f) \/ Id(f) \/ Compare(f) \/ Empty(f) \/ Own(f) \/ Look(f) \/ FillStart(f) \/ Fill(f)
    \/ Walk(f) \/ Install(f) \/ Store(f)
==============================================================================
