------------------------------ MODULE Memory ---------------------------------
(* SPDX-License-Identifier: Apache-2.0 *)
(* The operating system's memory management: faults, kpoold, kpted, withdrawal, munmap, fork. *)
EXTENDS Hardware
-----------------------------------------------------------------------------
(* Pieces of the operating system. *)

Adopted(p) == cache' = [cache EXCEPT ![p] = pte[p].v] /\ pte' = [pte EXCEPT ![p] = Entry("synced", @.v)]

\* The fence comes before the next life of an emptied entry, which is a candidate from now on.
Emptied(p) == pte' = [pte EXCEPT ![p] = Empty] /\ todo' = todo \cup {p} /\ unfenced' = TRUE

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

\* Freed frames go to other users, who write to them. Frames and slots that are free are thus alike; which one is taken next
\* does not matter, and the lowest is.
Reused(set) == data' = [f \in Frames |-> IF f \in set THEN Foreign ELSE data[f]]

Cached(p) == cache[p] # None
Go(t, step) == pc' = [pc EXCEPT ![t] = step]

\* The fault handler keeps the page table lock for three steps: exchange, "unfenced", candidate.
DisarmOrder == IF Rule("unfenced-before-candidate") THEN <<"unfenced", "candidate">> ELSE <<"candidate", "unfenced">>
PteLocked(p) == \E h \in Harts : hart[h].st \in {"unfenced", "candidate"} /\ hart[h].p = p
Disarming(h) ==
    LET st == hart[h].st IN
    /\ st \in {"unfenced", "candidate"}
    /\ hart' = [hart EXCEPT ![h].st = IF st = DisarmOrder[1] THEN DisarmOrder[2] ELSE "fill"]
    /\ IF st = "unfenced" THEN unfenced' = TRUE /\ UNCHANGED todo ELSE todo' = todo \cup {hart[h].p} /\ UNCHANGED unfenced
    /\ UNCHANGED <<mem, tlb, slot, cmds, frames, data, file, pages, locks, thread, fw, left>>

\* The fault handler. OS-10: an armed entry is emptied, the ordinary fault goes on.
Fault(h) ==
    LET p == hart[h].p
        again == hart' = [hart EXCEPT ![h] = IdleHart]
        keep == <<pmd, pud, table, tlb, slot, cmds, ring, ret, file, dirty, busy, locks, thread, fw, left>>
    IN  /\ hart[h].st = "fault" /\ mmap = None
        /\ \/ dead /\ again /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~dead /\ Is(p, "armed")
              /\ pte' = [pte EXCEPT ![p] = Empty] /\ hart' = [hart EXCEPT ![h].st = DisarmOrder[1]]
              /\ UNCHANGED <<cache, candidates, free, data>>
           \/ /\ ~dead /\ Is(p, "unsynced") /\ lock = None
              /\ Settle(p) /\ again /\ UNCHANGED <<free, data>>
           \/ /\ ~dead /\ Is(p, "synced") /\ again /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~dead /\ Is(p, "empty") /\ hart' = [hart EXCEPT ![h].st = "fill"]
              /\ UNCHANGED <<pte, cache, candidates, free, data>>
        /\ UNCHANGED keep

\* The ordinary file fault: find or read the page (invalidate_lock shared), map it.
Fill(h) ==
    LET p == hart[h].p
        again == hart' = [hart EXCEPT ![h] = IdleHart]
        keep == <<pmd, pud, table, tlb, slot, cmds, ring, ret, file, dirty, busy, locks, thread, fw, left>>
    IN  /\ hart[h].st = "fill" /\ mmap = None
        /\ \/ dead /\ again /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~dead /\ Cached(p) /\ busy[p] = None
              /\ pte' = IF Is(p, "empty") THEN [pte EXCEPT ![p] = Entry("synced", cache[p])] ELSE pte
              /\ again /\ UNCHANGED <<cache, candidates, free, data>>
           \/ /\ ~dead /\ ~Cached(p) /\ blk[p] = None /\ again   \* SIGBUS, or zeroes
              /\ UNCHANGED <<pte, cache, candidates, free, data>>
           \/ /\ ~dead /\ ~Cached(p) /\ blk[p] # None /\ inval = None /\ lock = None
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
(* kpted: OS-6. Marks are cleared from the top, each before what is below it is read. *)

kpted == "kpted"
keepPted == <<table, hw, frames, data, file, dirty, busy, dead, rwsem, inval, mmap, readers, dio, rearming,
              candidates, at, fw, found, must>>

PtedStart ==
    /\ pc[kpted] = "idle" /\ pud /\ ~dead
    /\ pud' = ~Rule("clear-top-down")
    /\ work' = [work EXCEPT ![kpted] = Tables] /\ Go(kpted, "tables")
    /\ UNCHANGED <<pte, pmd, cache, lock, scan, failed, left>> /\ UNCHANGED keepPted

PtedTable ==
    LET t == Least(work[kpted]) IN
    /\ pc[kpted] = "tables" /\ work[kpted] # {} /\ lock = None
    /\ IF pmd[t] /\ ~dead
       THEN /\ lock' = kpted /\ pmd' = [pmd EXCEPT ![t] = ~Rule("clear-before-scan")]
            /\ scan' = {p \in Pages : TableOf(p) = t} /\ Go(kpted, "scan")
            /\ UNCHANGED work
       ELSE /\ work' = [work EXCEPT ![kpted] = @ \ {t}]
            /\ UNCHANGED <<lock, pmd, scan, pc>>
    /\ UNCHANGED <<pte, pud, cache, failed, left>> /\ UNCHANGED keepPted

PtedScan ==
    LET p == Least(scan) IN
    /\ pc[kpted] = "scan" /\ scan # {}
    /\ scan' = scan \ {p}
    /\ \/ /\ IF Is(p, "unsynced") THEN Adopted(p) ELSE UNCHANGED <<pte, cache>>
          /\ UNCHANGED <<failed, left>>
       \/ Is(p, "unsynced") /\ Spend("fail") /\ failed' = TRUE /\ UNCHANGED <<pte, cache>>
    /\ UNCHANGED <<pmd, pud, lock, work, pc>> /\ UNCHANGED keepPted

\* Pages that found no memory are to be found again by the marks.
PtedLeave ==
    LET t == Least(work[kpted]) IN
    /\ pc[kpted] = "scan" /\ scan = {}
    /\ pmd' = [pmd EXCEPT ![t] = IF ~Rule("clear-before-scan") THEN FALSE ELSE @ \/ (failed /\ Rule("mark-again"))]
    /\ pud' = (pud \/ (failed /\ Rule("mark-again")))
    /\ failed' = FALSE /\ lock' = None
    /\ work' = [work EXCEPT ![kpted] = @ \ {t}] /\ Go(kpted, "tables")
    /\ UNCHANGED <<pte, cache, scan, left>> /\ UNCHANGED keepPted

PtedEnd ==
    /\ pc[kpted] = "tables" /\ work[kpted] = {}
    /\ pud' = (pud /\ Rule("clear-top-down"))
    /\ Go(kpted, "idle")
    /\ UNCHANGED <<pte, pmd, cache, lock, work, scan, failed, left>> /\ UNCHANGED keepPted

Pted == kpted \in Threads /\ (PtedStart \/ PtedTable \/ PtedScan \/ PtedLeave \/ PtedEnd)

-----------------------------------------------------------------------------
(* sync (fsync, memory failure, suspend): every page that is filled now gets its metadata (OS-8). It does not trust the upper
   mark, which another pass may have cleared and not yet acted upon. *)

sync == "sync"
SyncBegin ==
    /\ pc[sync] = "idle" /\ Spend("move")
    /\ must' = {p \in Pages : Is(p, "unsynced")}
    /\ Go(sync, "table") /\ work' = [work EXCEPT ![sync] = Tables]
    /\ IF Rule("fence-before-skip") THEN Fence(sync) ELSE UNCHANGED fw
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, locks, candidates, at, found, scan, failed>>

SyncTable ==
    LET t == Least(work[sync])
        mine == {p \in Pages : TableOf(p) = t /\ Is(p, "unsynced")}
    IN  /\ pc[sync] = "table" /\ fw[sync] = {} /\ work[sync] # {} /\ lock = None
        /\ work' = [work EXCEPT ![sync] = @ \ {t}]
        /\ IF pmd[t] /\ (pud \/ Rule("ignore-upper-mark"))
           THEN /\ pte' = [p \in Pages |-> IF p \in mine THEN Entry("synced", pte[p].v) ELSE pte[p]]
                /\ cache' = [p \in Pages |-> IF p \in mine THEN pte[p].v ELSE cache[p]]
                /\ pmd' = [pmd EXCEPT ![t] = FALSE]
           ELSE UNCHANGED <<pte, cache, pmd>>
        /\ UNCHANGED <<pud, table, hw, frames, data, file, dirty, busy, locks, candidates, pc, at, found, scan, failed, must, fw, left>>

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
   SMU; only then go on. Whoever leaves the area alive gives the lock back before the flush, and fences only if needed. *)

Withdrawers == {"munmap", "fork", "truncate", "dio", "move"} \cap Threads
Afterwards(t) == CASE t = "munmap" -> "zap" [] t = "fork" -> "copy" [] t = "truncate" -> (IF Rule("disarm-before-cache") THEN "unmap" ELSE "free")
              [] OTHER -> "write"
keepW == <<pmd, pud, table, cmds, frames, data, file, dirty, busy, rwsem, inval, mmap, readers, dio, rearming,
           at, found, scan, failed, must, left>>

WLock(t) ==
    /\ pc[t] = "lock" /\ lock = None /\ lock' = t /\ Go(t, "empty")
    /\ UNCHANGED <<pte, cache, candidates, hart, tlb, slot, fw, dead, work>> /\ UNCHANGED keepW

\* REQ: OS-7: by exchange. Without it: look, and store later (found holds what was seen).
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
    /\ lock' = IF t = "munmap" THEN lock ELSE None
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
    /\ pc[t] = "unlock" /\ lock' = (IF lock = t THEN None ELSE lock) /\ dead' = (dead \/ t = "munmap")
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
    /\ mmap' = munmap /\ work' = [work EXCEPT ![munmap] = Pages] /\ Go(munmap, "lock")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, rearming, candidates, fw,
                   at, found, scan, failed, must, left>>

UnmapZap ==
    /\ pc[munmap] = "zap" /\ Go(munmap, "tlb")
    /\ pte' = [p \in Pages |-> IF Is(p, "synced") THEN Empty ELSE pte[p]]
    /\ UNCHANGED <<pmd, pud, table, hw, frames, data, file, pages, locks, candidates, work, at, found, scan, failed, must, fw, left>>

UnmapEnd ==
    /\ pc[munmap] = "free" /\ Go(munmap, "over") /\ table' = FALSE /\ mmap' = None
    /\ UNCHANGED <<pte, pmd, pud, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, rearming, candidates,
                   work, at, found, scan, failed, must, fw, left>>

UnmapFlush == pc[munmap] = "tlb" /\ Go(munmap, "free") /\ Flushed

MunmapStep == munmap \in Threads /\ (UnmapZap \/ UnmapFlush \/ UnmapEnd)
Munmap == MunmapStep \/ (munmap \in Threads /\ UnmapStart)

\* fork: the child's copy of the tables has neither armed nor unsynced entries.
fork == "fork"
ForkStart ==
    /\ pc[fork] = "idle" /\ mmap = None /\ ~dead /\ (readers = {} \/ ~Rule("rearm-under-mmap-lock"))
    /\ mmap' = fork /\ work' = [work EXCEPT ![fork] = Pages] /\ Go(fork, "lock") /\ Spend("move")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, rearming, candidates, fw,
                   at, found, scan, failed, must>>
ForkEnd ==
    /\ pc[fork] = "copy" /\ Go(fork, "idle") /\ mmap' = None
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, rwsem, inval, readers, dio, rearming, candidates, fw,
                   work, at, found, scan, failed, must, left>>
Fork == fork \in Threads /\ (ForkStart \/ ForkEnd)
==============================================================================
