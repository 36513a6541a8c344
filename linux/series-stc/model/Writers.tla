-------------------------------- MODULE Writers ------------------------------
(* SPDX-License-Identifier: GPL-2.0 *)
(* Who holds mmap_lock for writing: munmap, mmap, split, merge, mremap, fork, exit; and khugepaged, which holds no such lock.
   What changes nothing but VMAs is one step. *)
EXTENDS Faults
-----------------------------------------------------------------------------

MmapWriteLock(m) == wr.st = "idle" /\ MmapReaders(m) = {}
Quiet(set) == \A v \in set : Readers(v) = {}             \* what vma_start_write waits for
NewCaches(set) ==
    IF Scope = "vma"
    THEN /\ line' = [c \in Caches |-> IF c \in set THEN EmptyCache ELSE line[c]]
         /\ cid' = [c \in Caches |-> IF c \in set THEN 0 ELSE cid[c]]
    ELSE UNCHANGED caches

-----------------------------------------------------------------------------
(* munmap: the VMA is detached, its pages go, mmap_lock is downgraded, tables are freed. *)

UnmapStart ==
    \E v \in Vmas \ Unused :
        /\ MmapWriteLock(vma[v].m) /\ Spend("unmap")
        /\ wr' = [NoWrite EXCEPT !.st = "wait", !.op = "unmap", !.m = vma[v].m, !.v = v, !.lo = vma[v].lo, !.hi = vma[v].hi]
        /\ UNCHANGED <<memory, areas, caches, numbers, th>>

Leaf(m, a) == IF Table(m, a, Bottom) = None THEN None ELSE Entry(Table(m, a, Bottom), Index(a, Bottom))

Detach ==
    /\ wr.st = "wait" /\ wr.op = "unmap"
    /\ Quiet({wr.v}) \/ ~Rule("wait-for-readers")
    /\ vma' = [vma EXCEPT ![wr.v] = NoVma]
    /\ LET pages == {Leaf(wr.m, a) : a \in wr.lo .. wr.hi} \cap DOMAIN link IN
       link' = Cut(pages) /\ rss' = [rss EXCEPT ![wr.m] = @ - Cardinality(pages)]
    /\ wr' = [wr EXCEPT !.st = "free"]
    /\ UNCHANGED <<own, caches, numbers, th, left>>

\* Tables of the range that no VMA uses any more, the lowest first. They go with all that is in them.
Free ==
    LET m == wr.m
        idle(x) == ~Rule("floor-ceiling") \/ \A b \in Beside(x[2], x[1]) : ~Covered(m, b)
        dying == {x \in (1 .. Bottom) \X (wr.lo .. wr.hi) : Table(m, x[2], x[1]) # None /\ idle(x)}
        x == CHOOSE x \in dying : \A y \in dying : y[1] < x[1] \/ (y[1] = x[1] /\ y[2] >= x[2])
        t == Table(m, x[2], x[1])
    IN  /\ wr.st = "free"
        /\ IF dying = {} THEN wr' = NoWrite /\ UNCHANGED link
           ELSE /\ link' = Cut({k \in DOMAIN link : link[k] = t \/ Holder(k) = t})
                /\ wr' = IF x[1] = Pmd /\ Rule("invalidate-at-free") THEN [wr EXCEPT !.st = "invalidate", !.at = FirstPlace] ELSE wr
        /\ UNCHANGED <<rss, areas, caches, numbers, th, left>>

\* stc_invalidate: the lines of the mm one by one, or a new id.
Invalidate ==
    LET next == IF HasIds THEN None ELSE NextPlace(wr.at) IN
    /\ wr.st = "invalidate"
    /\ IF HasIds THEN NewId(wr.m, FALSE) /\ UNCHANGED line
       ELSE line' = [line EXCEPT ![wr.m][wr.at] = NoLine] /\ UNCHANGED numbers
    /\ wr' = IF next # None THEN [wr EXCEPT !.at = next]
             ELSE IF wr.op = "unmap" THEN [wr EXCEPT !.st = "free", !.at = None]
             ELSE NoWrite
    /\ UNCHANGED <<memory, areas, cid, th, left>>

-----------------------------------------------------------------------------
(* mmap of a gap, by a new VMA or a larger one; split; merge. *)

Map ==
    \E m \in Mms, lo \in Addresses, hi \in Addresses :
        /\ lo <= hi /\ \A a \in lo .. hi : ~Covered(m, a)
        /\ \A a \in {lo - 1, hi + 1} \cap Addresses : Covered(m, a)
        /\ Used(m) # {} \/ m = 1
        /\ MmapWriteLock(m) /\ Spend("map")
        /\ \/ /\ Unused # {}
              /\ vma' = [vma EXCEPT ![Least(Unused)] = [m |-> m, lo |-> lo, hi |-> hi]]
              /\ own' = [own EXCEPT ![Least(Unused)] = Least(Unused)]
              /\ NewCaches({Least(Unused)})
           \/ \E v \in Used(m) :
                 /\ Quiet({v})
                 /\ vma[v].hi + 1 = lo \/ hi + 1 = vma[v].lo
                 /\ vma' = [vma EXCEPT ![v].lo = IF hi < @ THEN lo ELSE @, ![v].hi = IF lo > @ THEN hi ELSE @]
                 /\ UNCHANGED <<own, caches>>
        /\ UNCHANGED <<memory, numbers, th, wr>>

\* The new VMA gets no cache. Without the rule: the old one's (vm_area_dup copies all that is in the structure).
Split ==
    \E v \in Vmas \ Unused :
        LET n == Least(Unused) IN
        /\ Unused # {} /\ MmapWriteLock(vma[v].m) /\ Quiet({v}) /\ Spend("split")
        /\ \E at \in vma[v].lo + 1 .. vma[v].hi :
              vma' = [vma EXCEPT ![v].hi = at - 1, ![n] = [vma[v] EXCEPT !.lo = at]]
        /\ own' = [own EXCEPT ![n] = IF Rule("dup-drops-cache") THEN n ELSE own[v]]
        /\ NewCaches({n})
        /\ UNCHANGED <<memory, numbers, th, wr>>

Merge ==
    \E v \in Vmas \ Unused, n \in Vmas \ Unused :
        /\ vma[v].m = vma[n].m /\ vma[v].hi + 1 = vma[n].lo
        /\ MmapWriteLock(vma[v].m) /\ Quiet({v, n}) /\ Spend("split")
        /\ \E kept \in {v, n} :
              vma' = [vma EXCEPT ![v] = NoVma, ![n] = NoVma, ![kept] = [m |-> vma[v].m, lo |-> vma[v].lo, hi |-> vma[n].hi]]
        /\ UNCHANGED <<memory, own, caches, numbers, th, wr>>

-----------------------------------------------------------------------------
(* mremap with MREMAP_DONTUNMAP: a PMD table moves to another place (move_normal_pud); the old VMA stays. *)

MoveStart ==
    \E v \in Vmas \ Unused, from \in Addresses, to \in Addresses :
        LET m == vma[v].m IN
        /\ from = Least(Beside(from, Pmd)) /\ to = Least(Beside(to, Pmd)) /\ Unused # {}
        /\ \A a \in Beside(from, Pmd) : Covers(v, m, a)
        /\ \A a \in Beside(to, Pmd) : ~Covered(m, a)
        /\ MmapWriteLock(m) /\ Spend("move")
        /\ wr' = [NoWrite EXCEPT !.st = "wait", !.op = "move", !.m = m, !.v = v, !.n = Least(Unused), !.lo = from, !.hi = to]
        /\ UNCHANGED <<memory, areas, caches, numbers, th>>

Move ==
    LET m == wr.m
        from == wr.lo
        to == wr.hi
        t == Table(m, from, Pmd)
        upper == IF Table(m, to, 1) = None THEN Fresh(m, to, 1) ELSE Table(m, to, 1)
    IN  /\ wr.st = "wait" /\ wr.op = "move" /\ Quiet({wr.v})
        /\ vma' = [vma EXCEPT ![wr.n] = [m |-> m, lo |-> to, hi |-> to + Slots - 1]]
        /\ own' = [own EXCEPT ![wr.n] = wr.n]
        /\ NewCaches({wr.n})
        /\ link' = IF t = None THEN link
                   ELSE (Entry(upper, Index(to, 1)) :> t) @@ (Entry(Root(m), Index(to, 0)) :> upper)
                        @@ Cut({Entry(Table(m, from, 1), Index(from, 1))})
        /\ wr' = IF t # None /\ Rule("invalidate-at-move") THEN [wr EXCEPT !.st = "invalidate", !.at = FirstPlace] ELSE NoWrite
        /\ UNCHANGED <<rss, numbers, th, left>>

-----------------------------------------------------------------------------
(* fork: the child starts with the parent's VMAs and no pages. Without new-mm-empty it starts with the parent's lines and id as well
   (dup_mm copies the whole structure). *)

Fork ==
    LET twin(v) == Nth(Rank(v, Used(1)), Unused)
        twins == {twin(v) : v \in Used(1)}
        elder(n) == CHOOSE v \in Used(1) : twin(v) = n
    IN  /\ MmapWriteLock(1) /\ Quiet(Used(1)) /\ Spend("fork")
        /\ vma' = [n \in Vmas |-> IF n \in twins THEN [vma[elder(n)] EXCEPT !.m = 2] ELSE vma[n]]
        /\ own' = [n \in Vmas |-> IF n \notin twins THEN own[n] ELSE IF Rule("dup-drops-cache") THEN n ELSE own[elder(n)]]
        /\ IF Scope = "mm" THEN line' = [line EXCEPT ![2] = IF Rule("new-mm-empty") THEN @ ELSE line[1]] /\ UNCHANGED cid
           ELSE NewCaches(twins)
        /\ IF Rule("new-mm-empty") THEN NewId(2, TRUE) ELSE mid' = [mid EXCEPT ![2] = mid[1]] /\ UNCHANGED ids
        /\ UNCHANGED <<memory, th, wr>>

\* The last thread is gone, and another process gets the mm_struct.
RECURSIVE Below(_)
Below(table) == LET mine == {x \in DOMAIN link : Holder(x) = table} IN mine \cup UNION {Below(link[x]) : x \in {y \in mine : link[y] # Page}}
Exit ==
    \E m \in Mms :
        /\ Forks = 0 /\ \A f \in Faults : th[f].m # m
        /\ MmapWriteLock(m) /\ Spend("exit")
        /\ link' = Cut(Below(Root(m))) /\ rss' = [rss EXCEPT ![m] = 0]
        /\ vma' = [v \in Vmas |-> IF vma[v].m = m \/ StartVma(v).m = m THEN StartVma(v) ELSE vma[v]]
        /\ NewId(m, TRUE)
        /\ IF Scope = "mm" THEN line' = [line EXCEPT ![m] = IF Rule("new-mm-empty") THEN EmptyCache ELSE @] /\ UNCHANGED cid
           ELSE NewCaches({v \in Vmas : StartVma(v).m = m})
        /\ UNCHANGED <<own, th, wr>>

-----------------------------------------------------------------------------
(* khugepaged replaces a PTE table of a file's mapping, under the locks of the page tables alone (retract_page_tables). *)

Collapse ==
    \E m \in Mms, a \in Addresses :
        LET t == Table(m, a, Bottom) IN
        /\ PteTables /\ t # None /\ Spend("collapse")
        /\ link' = Cut({x \in DOMAIN link : link[x] = t \/ Holder(x) = t})
        /\ rss' = [rss EXCEPT ![m] = @ - Cardinality({x \in DOMAIN link : Holder(x) = t})]
        /\ UNCHANGED <<areas, caches, numbers, th, wr>>

Begins == UnmapStart \/ Map \/ Split \/ Merge \/ MoveStart \/ Fork \/ Exit
Writer == Detach \/ Free \/ Invalidate \/ Move
==============================================================================
