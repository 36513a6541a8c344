------------------------------ MODULE Memory ---------------------------------
(* SPDX-License-Identifier: Apache-2.0 *)
(* The operating system's memory management: faults, kpoold, kpted, withdrawal, munmap, fork. *)
EXTENDS Hardware
-----------------------------------------------------------------------------
(* Pieces of the operating system. *)

Adopted(p) == cache' = [cache EXCEPT ![p] = pte[p].v] /\ pte' = [pte EXCEPT ![p] = Entry("synced", @.v)]

\* An emptied entry is a candidate from now on. There must be a fence before it is armed again.
Emptied(p) ==
    /\ pte' = [pte EXCEPT ![p] = Empty]
    /\ IF p \in Mine THEN todo' = todo \cup {p} /\ unfenced' = TRUE ELSE UNCHANGED candidates

\* Neither armed nor unsynced afterwards (OS-7: by exchange).
Settle(p) ==
    CASE Is(p, "armed") -> Emptied(p) /\ UNCHANGED cache
      [] Is(p, "unsynced") -> Adopted(p) /\ UNCHANGED candidates
      [] OTHER -> UNCHANGED <<pte, cache, candidates>>

\* A folio with `bytes` enters the page cache, through the gate (OS-2).
Insert(p, bytes) ==
    /\ free # {}
    /\ LET f == Least(free) IN
          /\ free' = free \ {f} /\ data' = [data EXCEPT ![f] = bytes] /\ cache' = [cache EXCEPT ![p] = f]
    /\ IF Rule("gate") /\ Is(p, "armed")
       THEN Emptied(p)
       ELSE UNCHANGED <<pte, candidates>>

\* Freed frames go to other users, who write to them. So free frames are interchangeable, and so are free slots: it does not
\* matter which one is taken next, and the model takes the lowest.
Reused(set) == data' = [f \in Frames |-> IF f \in set THEN Foreign ELSE data[f]]

Cached(p) == cache[p] # None
Open(held, n) == held = None \/ n # 1   \* locks of the first address space, or area and file, that is
\* There is a block, and a namespace to read it from.
Has(p) == blk[p] # None /\ (DescOf(p) # 1 \/ ctrl.owner = "ours")
Go(t, step) == pc' = [pc EXCEPT ![t] = step]

\* The fault handler keeps the page table lock for three steps: exchange, "unfenced", candidate.
DisarmOrder == IF Rule("unfenced-before-candidate") THEN <<"unfenced", "candidate">> ELSE <<"candidate", "unfenced">>
PteLocked(p) == \E h \in Harts : hart[h].st \in {"unfenced", "candidate"} /\ hart[h].p = p
Disarming(h) ==
    LET st == hart[h].st IN
    /\ st \in {"unfenced", "candidate"}
    /\ hart' = [hart EXCEPT ![h].st = IF st = DisarmOrder[1] THEN DisarmOrder[2] ELSE "fill"]
    /\ IF hart[h].p \notin Mine THEN UNCHANGED candidates
       ELSE IF st = "unfenced" THEN unfenced' = TRUE /\ UNCHANGED todo ELSE todo' = todo \cup {hart[h].p} /\ UNCHANGED unfenced
    /\ UNCHANGED <<mem, tlb, slot, cmds, frames, data, file, pages, locks, thread, fw, left>>

\* The fault handler. OS-10: it empties an armed entry, and then handles the fault as an ordinary one.
Fault(h) ==
    LET p == hart[h].p
        again == hart' = [hart EXCEPT ![h] = IdleHart]
        over == Dead(AreaOf(p))
        keep == <<pmd, pud, hint, table, tlb, slot, cmds, ring, ret, file, dirty, busy, locks, thread, fw, left>>
    IN  /\ hart[h].st = "fault" /\ Open(mmap, SpaceOf(p))
        /\ \/ over /\ again /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~over /\ Is(p, "armed")
              /\ pte' = [pte EXCEPT ![p] = Empty] /\ hart' = [hart EXCEPT ![h].st = DisarmOrder[1]]
              /\ UNCHANGED <<cache, candidates, free, data>>
           \/ /\ ~over /\ Is(p, "unsynced") /\ lock[AreaOf(p)] = None
              /\ Settle(p) /\ again /\ UNCHANGED <<free, data>>
           \/ /\ ~over /\ Is(p, "synced") /\ again /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~over /\ Is(p, "empty") /\ hart' = [hart EXCEPT ![h].st = "fill"]
              /\ UNCHANGED <<pte, cache, candidates, free, data>>
        /\ UNCHANGED keep

\* The ordinary file fault: find or read the page (invalidate_lock shared), map it.
Fill(h) ==
    LET p == hart[h].p
        again == hart' = [hart EXCEPT ![h] = IdleHart]
        over == Dead(AreaOf(p))
        keep == <<pmd, pud, hint, table, tlb, slot, cmds, ring, ret, file, dirty, busy, locks, thread, fw, left>>
    IN  /\ hart[h].st = "fill" /\ Open(mmap, SpaceOf(p))
        /\ \/ over /\ again /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~over /\ Cached(p) /\ busy[p] = None
              /\ pte' = IF Is(p, "empty") THEN [pte EXCEPT ![p] = Entry("synced", cache[p])] ELSE pte
              /\ again /\ UNCHANGED <<cache, candidates, free, data>>
           \/ /\ ~over /\ ~Cached(p) /\ ~Has(p) /\ again         \* SIGBUS, or zeroes
              /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~over /\ ~Cached(p) /\ Has(p) /\ Open(inval, AreaOf(p)) /\ lock[AreaOf(p)] = None
              /\ IF Rule("gate") /\ Is(p, "unsynced")
                 THEN Settle(p) /\ again /\ UNCHANGED <<free, data>>
                 ELSE Insert(p, disk[blk[p]]) /\ UNCHANGED hart
        /\ UNCHANGED keep

-----------------------------------------------------------------------------
(* kpoold: frames. OS-9: what is outstanding never exceeds the ring's depth. *)

Outstanding == Cardinality(ring) + Cardinality({s \in Slots : slot[s].f # None /\ slot[s].st \notin {"pmd", "pud", "done"}})
               + Cardinality({p \in Pages : Is(p, "unsynced")})

Refill ==
    /\ "kpoold" \in Threads /\ Outstanding < RingDepth
    /\ free # {} /\ free' = free \ {Least(free)} /\ ring' = ring \cup {Least(free)}
    /\ UNCHANGED <<mem, hw, ret, data, file, pages, locks, candidates, thread, fw, left>>

TakeReturns ==
    /\ "kpoold" \in Threads /\ ret # {}
    /\ free' = free \cup ret /\ ret' = {} /\ Reused(ret)
    /\ UNCHANGED <<mem, hw, ring, file, pages, locks, candidates, thread, fw, left>>

-----------------------------------------------------------------------------
(* kpted: OS-6. Marks are cleared from the top, each before the entries below it are read. Each area has separate passes. An upper
   mark may also belong to other areas of the address space. A pass that clears it leaves a hint for each of them. (In Linux the
   hint is a count that differs from the one that the area saw last.) *)

PassOf == [kpted |-> 1, kpted2 |-> 2, kpted3 |-> 3]
Passes == DOMAIN PassOf \cap Threads
Sharers(a) == {b \in Areas : b # a /\ SpaceAt(b) = SpaceAt(a)}
keepPted == <<table, hw, frames, data, file, dirty, busy, dead, rwsem, inval, mmap, readers, dio, reading, rearming,
              candidates, at, fw, found, must>>

PtedStart(k) ==
    LET a == PassOf[k] n == SpaceAt(a) alone == Sharers(a) = {} IN
    /\ pc[k] = "idle" /\ (pud[n] \/ hint[a]) /\ ~Dead(a)
    /\ pud' = [pud EXCEPT ![n] = @ /\ ~Rule("clear-top-down")]
    /\ work' = [work EXCEPT ![k] = TablesIn(a)] /\ Go(k, IF alone THEN "tables" ELSE IF pud[n] THEN "share" ELSE "hint")
    /\ UNCHANGED <<pte, pmd, hint, cache, lock, scan, failed, left>> /\ UNCHANGED keepPted

PtedShare(k) ==
    /\ pc[k] = "share" /\ Go(k, "hint")
    /\ hint' = IF Rule("tell-the-others") THEN [b \in Areas |-> hint[b] \/ b \in Sharers(PassOf[k])] ELSE hint
    /\ UNCHANGED <<pte, pmd, pud, cache, lock, work, scan, failed, left>> /\ UNCHANGED keepPted

PtedHint(k) ==
    /\ pc[k] = "hint" /\ Go(k, "tables")
    /\ hint' = [hint EXCEPT ![PassOf[k]] = FALSE]
    /\ UNCHANGED <<pte, pmd, pud, cache, lock, work, scan, failed, left>> /\ UNCHANGED keepPted

PtedTable(k) ==
    LET t == Least(work[k]) a == PassOf[k] IN
    /\ pc[k] = "tables" /\ work[k] # {} /\ lock[a] = None
    /\ IF pmd[t] /\ ~Dead(a)
       THEN /\ lock' = [lock EXCEPT ![a] = k] /\ pmd' = [pmd EXCEPT ![t] = ~Rule("clear-before-scan")]
            /\ scan' = [scan EXCEPT ![k] = {p \in Pages : TableOf(p) = t}] /\ Go(k, "scan")
            /\ UNCHANGED work
       ELSE /\ work' = [work EXCEPT ![k] = @ \ {t}]
            /\ UNCHANGED <<lock, pmd, scan, pc>>
    /\ UNCHANGED <<pte, pud, hint, cache, failed, left>> /\ UNCHANGED keepPted

PtedScan(k) ==
    LET p == Least(scan[k]) IN
    /\ pc[k] = "scan" /\ scan[k] # {}
    /\ scan' = [scan EXCEPT ![k] = @ \ {p}]
    /\ \/ /\ IF Is(p, "unsynced") THEN Adopted(p) ELSE UNCHANGED <<pte, cache>>
          /\ UNCHANGED <<failed, left>>
       \/ Is(p, "unsynced") /\ Spend("fail") /\ failed' = [failed EXCEPT ![k] = TRUE] /\ UNCHANGED <<pte, cache>>
    /\ UNCHANGED <<pmd, pud, hint, lock, work, pc>> /\ UNCHANGED keepPted

\* If there was no memory to adopt a page, the marks are set again, so that a later pass finds the page.
PtedLeave(k) ==
    LET t == Least(work[k]) a == PassOf[k] IN
    /\ pc[k] = "scan" /\ scan[k] = {}
    /\ pmd' = [pmd EXCEPT ![t] = IF ~Rule("clear-before-scan") THEN FALSE ELSE @ \/ (failed[k] /\ Rule("mark-again"))]
    /\ pud' = [pud EXCEPT ![SpaceAt(a)] = @ \/ (failed[k] /\ Rule("mark-again"))]
    /\ failed' = [failed EXCEPT ![k] = FALSE] /\ lock' = [lock EXCEPT ![a] = None]
    /\ work' = [work EXCEPT ![k] = @ \ {t}] /\ Go(k, "tables")
    /\ UNCHANGED <<pte, hint, cache, scan, left>> /\ UNCHANGED keepPted

PtedEnd(k) ==
    /\ pc[k] = "tables" /\ work[k] = {}
    /\ pud' = [pud EXCEPT ![SpaceAt(PassOf[k])] = @ /\ Rule("clear-top-down")]
    /\ Go(k, "idle")
    /\ UNCHANGED <<pte, pmd, hint, cache, lock, work, scan, failed, left>> /\ UNCHANGED keepPted

Pted(k) == PtedStart(k) \/ PtedShare(k) \/ PtedHint(k) \/ PtedTable(k) \/ PtedScan(k) \/ PtedLeave(k) \/ PtedEnd(k)

-----------------------------------------------------------------------------
(* sync (fsync, memory failure, suspend): every page that is filled when it begins gets its metadata (OS-8). A sync does not trust
   the upper mark: another pass may have cleared it without having adopted the pages yet. *)

sync == "sync"
SyncBegin ==
    /\ pc[sync] = "idle" /\ Spend("move")
    /\ must' = {p \in Mine : Is(p, "unsynced")}
    /\ Go(sync, "table") /\ work' = [work EXCEPT ![sync] = TablesIn(1)]
    /\ IF Rule("fence-before-skip") THEN Fence(sync) ELSE UNCHANGED fw
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, locks, candidates, at, found, scan, failed>>

SyncTable ==
    LET t == Least(work[sync])
        mine == {p \in Pages : TableOf(p) = t /\ Is(p, "unsynced")}
    IN  /\ pc[sync] = "table" /\ fw[sync] = {} /\ work[sync] # {} /\ lock[1] = None
        /\ work' = [work EXCEPT ![sync] = @ \ {t}]
        /\ IF pmd[t] /\ (pud[1] \/ Rule("ignore-upper-mark"))
           THEN /\ pte' = [p \in Pages |-> IF p \in mine THEN Entry("synced", pte[p].v) ELSE pte[p]]
                /\ cache' = [p \in Pages |-> IF p \in mine THEN pte[p].v ELSE cache[p]]
                /\ pmd' = [pmd EXCEPT ![t] = FALSE]
           ELSE UNCHANGED <<pte, cache, pmd>>
        /\ UNCHANGED <<pud, hint, table, hw, frames, data, file, dirty, busy, locks, candidates, pc, at, found, scan, failed,
                       must, fw, left>>

SyncEnd ==
    /\ pc[sync] = "table" /\ fw[sync] = {} /\ work[sync] = {}
    /\ Go(sync, "over")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, locks, candidates, work, at, found, scan, failed, must, fw, left>>

SyncForget ==
    /\ pc[sync] = "over" /\ Go(sync, "idle") /\ must' = {}
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, locks, candidates, work, at, found, scan, failed, fw, left>>

Sync == sync \in Threads /\ (SyncBegin \/ SyncTable \/ SyncEnd \/ SyncForget)

-----------------------------------------------------------------------------
(* Withdrawal, used by munmap, truncate, direct writes and moving of blocks. OS-4: empty the leaves, flush the harts, fence the
   SMU; only then go on. If the area stays alive, the lock is released before the flush, and there is a fence only if needed. *)

Withdrawers == {"munmap", "fork", "truncate", "dio", "move", "worker"} \cap Threads
Afterwards(t) == CASE t = "munmap" -> "zap" [] t = "fork" -> "copy" [] t = "worker" -> "over"
                   [] t = "truncate" -> (IF Rule("disarm-before-cache") THEN "unmap" ELSE "free")
                   [] OTHER -> "write"
keepW == <<pmd, pud, hint, table, cmds, frames, data, file, dirty, busy, rwsem, inval, mmap, readers, dio, reading, rearming,
           at, found, scan, failed, must, left>>

WLock(t) ==
    /\ pc[t] = "lock" /\ lock[1] = None /\ lock' = [lock EXCEPT ![1] = t] /\ Go(t, "empty")
    /\ UNCHANGED <<pte, cache, candidates, hart, tlb, slot, fw, dead, work>> /\ UNCHANGED keepW

\* REQ: OS-7: the entry is exchanged. Without this rule, an armed entry is read first, and emptied later by a plain store.
WEmpty(t) ==
    LET p == Least(work[t]) IN
    /\ pc[t] = "empty" /\ work[t] # {}
    /\ Rule("exchange-leaf") \/ ~Is(p, "armed")
    /\ Settle(p) /\ work' = [work EXCEPT ![t] = @ \ {p}]
    /\ UNCHANGED <<hart, tlb, slot, fw, dead, lock, pc>> /\ UNCHANGED keepW
WLook(t) ==
    /\ ~Rule("exchange-leaf") /\ pc[t] = "empty" /\ work[t] # {} /\ Is(Least(work[t]), "armed")
    /\ Go(t, "plain")
    /\ UNCHANGED <<pte, cache, candidates, hart, tlb, slot, fw, dead, lock, work>> /\ UNCHANGED keepW
WPlain(t) ==
    LET p == Least(work[t]) IN
    /\ pc[t] = "plain" /\ Emptied(p)
    /\ work' = [work EXCEPT ![t] = @ \ {p}] /\ Go(t, "empty")
    /\ UNCHANGED <<cache, hart, tlb, slot, fw, dead, lock>> /\ UNCHANGED keepW

WEmptied(t) ==
    /\ pc[t] = "empty" /\ work[t] = {}
    /\ lock' = IF t = "munmap" THEN lock ELSE [lock EXCEPT ![1] = None]
    /\ Go(t, IF t # "munmap" /\ ~unfenced THEN Afterwards(t) ELSE IF Rule("flush-before-fence") THEN "flush" ELSE "fence")
    /\ UNCHANGED <<pte, cache, candidates, hart, tlb, slot, fw, dead, work>> /\ UNCHANGED keepW
WFlush(t) ==
    /\ pc[t] = "flush"
    /\ IF Rule("flush-harts") THEN Flush ELSE UNCHANGED <<hart, tlb, slot>>
    /\ Go(t, IF Rule("flush-before-fence") THEN "fence" ELSE "unlock")
    /\ UNCHANGED <<pte, cache, candidates, fw, dead, lock, work>> /\ UNCHANGED keepW
WFence(t) ==
    /\ pc[t] = "fence"
    /\ IF Rule("fence-unit") THEN Fence(t) ELSE UNCHANGED fw
    /\ Go(t, "wait")
    /\ UNCHANGED <<pte, cache, candidates, hart, tlb, slot, dead, lock, work>> /\ UNCHANGED keepW
WWait(t) ==
    /\ pc[t] = "wait" /\ fw[t] = {}
    /\ Go(t, IF Rule("flush-before-fence") THEN "unlock" ELSE "flush")
    /\ UNCHANGED <<pte, cache, candidates, hart, tlb, slot, fw, dead, lock, work>> /\ UNCHANGED keepW
WUnlock(t) ==
    /\ pc[t] = "unlock" /\ lock' = (IF lock[1] = t THEN [lock EXCEPT ![1] = None] ELSE lock) /\ dead' = (dead \/ t = "munmap")
    /\ Go(t, Afterwards(t))
    /\ UNCHANGED <<pte, cache, candidates, hart, tlb, slot, fw, work>> /\ UNCHANGED keepW

Withdraw(t) == WLock(t) \/ WEmpty(t) \/ WLook(t) \/ WPlain(t) \/ WEmptied(t) \/ WFlush(t) \/ WFence(t) \/ WWait(t) \/ WUnlock(t)

-----------------------------------------------------------------------------
(* munmap: withdraw for good, zap what is left, flush, free the page tables. *)

Flushed ==
    /\ IF Rule("flush-at-unmap") THEN Flush ELSE UNCHANGED <<tlb, hart, slot>>
    /\ UNCHANGED <<mem, cmds, frames, data, file, pages, locks, candidates, work, at, found, scan, failed, must, fw, left>>

munmap == "munmap"
UnmapStart ==
    /\ pc[munmap] = "idle" /\ mmap = None /\ ~dead /\ (readers = {} \/ ~Rule("rearm-under-mmap-lock"))
    /\ mmap' = munmap /\ work' = [work EXCEPT ![munmap] = Mine] /\ Go(munmap, "lock")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, reading, rearming, candidates, fw,
                   at, found, scan, failed, must, left>>

UnmapZap ==
    /\ pc[munmap] = "zap" /\ Go(munmap, "tlb")
    /\ pte' = [p \in Pages |-> IF p \in Mine /\ Is(p, "synced") THEN Empty ELSE pte[p]]
    /\ UNCHANGED <<pmd, pud, hint, table, hw, frames, data, file, pages, locks, candidates, work, at, found, scan, failed,
                   must, fw, left>>

UnmapEnd ==
    /\ pc[munmap] = "free" /\ Go(munmap, "over") /\ table' = FALSE /\ mmap' = None
    /\ UNCHANGED <<pte, pmd, pud, hint, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, reading, rearming,
                   candidates, work, at, found, scan, failed, must, fw, left>>

UnmapFlush == pc[munmap] = "tlb" /\ Go(munmap, "free") /\ Flushed

MunmapStep == munmap \in Threads /\ (UnmapZap \/ UnmapFlush \/ UnmapEnd)
Munmap == MunmapStep \/ (munmap \in Threads /\ UnmapStart)

\* fork: the child's copy of the tables has neither armed nor unsynced entries.
fork == "fork"
ForkStart ==
    /\ pc[fork] = "idle" /\ mmap = None /\ ~dead /\ (readers = {} \/ ~Rule("rearm-under-mmap-lock"))
    /\ mmap' = fork /\ work' = [work EXCEPT ![fork] = Mine] /\ Go(fork, "lock") /\ Spend("move")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, reading, rearming, candidates, fw,
                   at, found, scan, failed, must>>
ForkEnd ==
    /\ pc[fork] = "copy" /\ Go(fork, "idle") /\ mmap' = None
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, reading, rearming, candidates, fw,
                   work, at, found, scan, failed, must, left>>
Fork == fork \in Threads /\ (ForkStart \/ ForkEnd)
==============================================================================
