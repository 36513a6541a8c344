------------------------------ MODULE Files ----------------------------------
(* SPDX-License-Identifier: Apache-2.0 *)
(* The operating system's files: reclaim and re-arming, write, truncate, direct write, moving of blocks. *)
EXTENDS Memory
-----------------------------------------------------------------------------
(* Taking a page out of the page cache: unmap, flush, remove; its frame is free then. Used by reclaim, truncate and the end of
   a direct write; each calls it with the step that follows. The miss that brought the page may not be over (marks, answer): if
   the page were armed again at once, a request could join this miss and get the freed frame. *)

Unmap(t, p) ==
    /\ pc[t] = "unmap" /\ Cached(p) /\ busy[p] = None
    /\ busy' = [busy EXCEPT ![p] = t]
    /\ pte' = IF Is(p, "synced") THEN [pte EXCEPT ![p] = Empty] ELSE pte
    /\ Go(t, "tlb")
    /\ UNCHANGED <<pmd, pud, hint, table, hw, frames, data, file, cache, dirty, locks, candidates, work, at, found, scan,
                   failed, must, fw, left>>

\* The page cache's lock makes the removal and the new candidate one step for everyone who holds this lock. If the candidate bit
\* came first, a run could take it, find the page still cached, and forget the page.
FlushTlb(t) == pc[t] = "tlb" /\ Go(t, IF Rule("candidate-at-removal") THEN "remove" ELSE "early") /\ Flushed

Candidate(p) == todo' = todo \cup {p} /\ unfenced' = (unfenced \/ Rule("evicted-unfenced"))

EarlyCandidate(t, p) ==
    /\ pc[t] = "early" /\ Go(t, "remove") /\ Candidate(p)
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, locks, work, at, found, scan, failed, must, fw, left>>

Remove(t, p, next) ==
    /\ pc[t] = "remove" /\ Go(t, next)
    /\ cache' = [cache EXCEPT ![p] = None] /\ dirty' = [dirty EXCEPT ![p] = FALSE] /\ busy' = [busy EXCEPT ![p] = None]
    /\ free' = free \cup {cache[p]} /\ Reused({cache[p]})
    /\ IF Rule("candidate-at-removal") THEN Candidate(p) ELSE UNCHANGED candidates
    /\ UNCHANGED <<mem, hw, ring, ret, file, locks, work, at, found, scan, failed, must, fw, left>>

TakeOut(t, p, next) == FlushTlb(t) \/ EarlyCandidate(t, p) \/ Remove(t, p, next)

reclaim == "reclaim"
\* REQ: OS-11: a dirty page is written back first.
ReclaimStart(p) ==
    /\ pc[reclaim] = "idle" /\ Cached(p) /\ busy[p] = None /\ (~dirty[p] \/ ~Rule("write-back-first"))
    /\ at' = [at EXCEPT ![reclaim] = p] /\ busy' = [busy EXCEPT ![p] = reclaim]
    /\ pte' = IF Is(p, "synced") THEN [pte EXCEPT ![p] = Empty] ELSE pte
    /\ Go(reclaim, "tlb")
    /\ UNCHANGED <<pmd, pud, hint, table, hw, frames, data, file, cache, dirty, locks, candidates, work, found, scan, failed,
                   must, fw, left>>

Reclaim ==
    /\ reclaim \in Threads
    /\ \/ \E p \in Mine : ReclaimStart(p)
       \/ TakeOut(reclaim, at[reclaim], "idle")

-----------------------------------------------------------------------------
(* Re-arming, one run at a time. A run takes mmap_lock and invalidate_lock shared. It takes the candidates, fences if entries were
   emptied since the last fence, and looks the blocks up. Under the area's lock it checks that nothing forbids arming. Under the
   page table lock it checks that the page has not become a candidate again. *)

Rearmers == {"rearm", "rearm2"} \cap Threads
keepR == <<pmd, pud, hint, table, hw, frames, data, file, pages, dead, rwsem, inval, mmap, dio, reading, scan, failed, must,
           left>>

Waiting == {u \in Rearmers : pc[u] = "later"}

MayRearm ==
    /\ ~dead \/ ~Rule("dead-checked-under-lock")
    /\ rearming = None \/ ~Rule("one-rearm-run")
    /\ mmap = None \/ ~Rule("rearm-under-mmap-lock")
    /\ inval = None \/ ~Rule("rearm-under-invalidate-lock")

RearmStart(t) ==
    /\ pc[t] = "idle" /\ MayRearm /\ (todo # {} \/ \E u \in Waiting : work[u] # {})
    /\ readers' = readers \cup {t} /\ rearming' = t /\ Go(t, "take")
    /\ UNCHANGED <<pte, lock, work, at, found, fw, candidates>> /\ UNCHANGED keepR

\* If a run takes a page again, a run that waits with an older fence gives the page up. A run may also take pages from such a
\* waiting run.
RearmTake(t) ==
    /\ pc[t] = "take" /\ todo' = {} /\ Go(t, "settle")
    /\ \E also \in SUBSET UNION {work[u] : u \in Waiting} : work' = [u \in Threads |->
           IF u = t THEN todo \cup also
           ELSE IF u \in Waiting /\ Rule("taken-once") THEN work[u] \ (todo \cup also) ELSE work[u]]
    /\ UNCHANGED <<pte, lock, readers, rearming, at, found, fw, unfenced>> /\ UNCHANGED keepR

RearmSettle(t) ==
    /\ pc[t] = "settle" /\ unfenced' = FALSE /\ Go(t, "lookup")
    /\ IF unfenced /\ Rule("fence-before-rearm") THEN Fence(t)
       ELSE fw' = [fw EXCEPT ![t] = IF Rule("pending-fence") THEN UNION {fw[u] : u \in Waiting} ELSE {}]
    /\ UNCHANGED <<pte, lock, readers, rearming, work, at, found, todo>> /\ UNCHANGED keepR

\* Direct reads never prevent arming: it does not matter who makes them, how many there are, and whether they began first.
InTheWay(p) == dio \/ Cached(p) \/ (reading /\ ~Rule("reads-deny-nothing"))
\* The descriptor is not stopped, and has not been given to another user since block and descriptor were looked up.
Bound(t) == ~Rule("bound-under-lock") \/ (ctrl.live /\ (found[t][2] = ctrl.gen \/ ~Rule("generation-at-store")))

\* A page without a block is dropped. A page without a descriptor is put back. (If the check under the lock is left out, it is
\* made here.)
RearmLookup(t) ==
    /\ pc[t] = "lookup" /\ fw[t] = {} /\ work[t] # {}
    /\ LET p == Least(work[t])
           drop == blk[p] = None \/ (~Rule("check-under-area-lock") /\ InTheWay(p))
           unbound == ctrl.owner # "ours" \/ ~ctrl.live
       IN  IF drop \/ unbound
           THEN /\ work' = [work EXCEPT ![t] = @ \ {p}] /\ todo' = IF drop THEN todo ELSE todo \cup {p}
                /\ UNCHANGED <<at, found, pc>>
           ELSE /\ at' = [at EXCEPT ![t] = p] /\ found' = [found EXCEPT ![t] = <<blk[p], ctrl.gen>>] /\ Go(t, "check")
                /\ UNCHANGED <<work, todo>>
    /\ UNCHANGED <<pte, lock, readers, rearming, fw, unfenced>> /\ UNCHANGED keepR

RearmCheck(t) ==
    LET p == at[t] IN
    /\ pc[t] = "check" /\ lock[1] = None
    /\ IF (dead /\ Rule("dead-checked-under-lock")) \/ (Rule("check-under-area-lock") /\ InTheWay(p)) \/ ~Bound(t)
       THEN /\ work' = [work EXCEPT ![t] = @ \ {p}] /\ Go(t, "lookup")
            /\ todo' = IF Cached(p) THEN todo ELSE todo \cup {p}
            /\ UNCHANGED lock
       ELSE lock' = [lock EXCEPT ![1] = t] /\ Go(t, "store") /\ UNCHANGED <<work, todo>>
    /\ UNCHANGED <<pte, readers, rearming, at, found, fw, unfenced>> /\ UNCHANGED keepR

RearmStore(t) ==
    LET p == at[t] IN
    /\ pc[t] = "store" /\ ~PteLocked(p)
    /\ pte' = IF Is(p, "empty") /\ (p \notin todo \/ ~Rule("look-again"))
              THEN [pte EXCEPT ![p] = Entry("armed", found[t][1])] ELSE pte
    /\ lock' = [lock EXCEPT ![1] = None] /\ work' = [work EXCEPT ![t] = @ \ {p}] /\ Go(t, "lookup")
    /\ UNCHANGED <<readers, rearming, at, found, fw, candidates>> /\ UNCHANGED keepR

\* The device does not answer, and others want the locks. The run releases them, keeps its pages and its fence, and comes again
\* later. (In Linux, a disarm in between sees that entries were emptied, and fences, too. Here it does not, and need not.)
RearmLater(t) ==
    /\ pc[t] = "lookup" /\ fw[t] # {} /\ readers' = readers \ {t} /\ rearming' = None /\ Go(t, "later")
    /\ UNCHANGED <<pte, lock, work, at, found, fw, candidates>> /\ UNCHANGED keepR

RearmAgain(t) ==
    /\ pc[t] = "later" /\ MayRearm /\ readers' = readers \cup {t} /\ rearming' = t /\ Go(t, "lookup")
    /\ UNCHANGED <<pte, lock, work, at, found, fw, candidates>> /\ UNCHANGED keepR

\* Or the run puts its pages back, as a fault does.
RearmGiveUp(t) ==
    /\ pc[t] = "lookup" /\ fw[t] # {} /\ readers' = readers \ {t} /\ rearming' = None /\ Go(t, "idle")
    /\ todo' = todo \cup work[t] /\ unfenced' = TRUE /\ work' = [work EXCEPT ![t] = {}] /\ fw' = [fw EXCEPT ![t] = {}]
    /\ UNCHANGED <<pte, lock, at, found>> /\ UNCHANGED keepR

RearmEnd(t) ==
    /\ pc[t] = "lookup" /\ fw[t] = {} /\ work[t] = {}
    /\ readers' = readers \ {t} /\ rearming' = None /\ Go(t, "idle")
    /\ at' = [at EXCEPT ![t] = None] /\ found' = [found EXCEPT ![t] = None]
    /\ UNCHANGED <<pte, lock, work, candidates, fw>> /\ UNCHANGED keepR

Rearm(t) ==
    \/ RearmStart(t) \/ RearmTake(t) \/ RearmSettle(t) \/ RearmLookup(t) \/ RearmCheck(t) \/ RearmStore(t) \/ RearmEnd(t)
    \/ RearmLater(t) \/ RearmAgain(t) \/ RearmGiveUp(t)

-----------------------------------------------------------------------------
(* write(): through the gate into the page cache; a hole gets a block. Write-back follows. *)

Write(p) ==
    /\ "writer" \in Threads /\ rwsem = None /\ lock[AreaOf(p)] = None /\ busy[p] = None /\ Spend("write")
    /\ LET new == Bytes(p, ver[p] + 1)
           held == IF Cached(p) THEN cache[p]
                   ELSE IF Is(p, "unsynced") /\ Rule("gate") THEN pte[p].v ELSE None
       IN  IF held # None
           THEN Settle(p) /\ data' = [data EXCEPT ![held] = new] /\ UNCHANGED free
           ELSE Insert(p, new)
    /\ IF blk[p] # None THEN UNCHANGED blk
       ELSE \E b \in FreeBlocks : blk' = [blk EXCEPT ![p] = b]
    /\ ver' = [ver EXCEPT ![p] = @ + 1] /\ dirty' = [dirty EXCEPT ![p] = TRUE]
    /\ UNCHANGED <<pmd, pud, hint, table, hw, ring, ret, disk, other, ctrl, busy, locks, thread, fw>>

WriteBack(p) ==
    /\ dirty[p] /\ busy[p] = None
    /\ disk' = [disk EXCEPT ![blk[p]] = data[cache[p]]] /\ dirty' = [dirty EXCEPT ![p] = FALSE]
    /\ UNCHANGED <<mem, hw, frames, data, blk, ver, other, ctrl, cache, busy, locks, candidates, thread, fw, left>>

-----------------------------------------------------------------------------
(* truncate or punch of one page, and another user's file that takes the block. *)

truncate == "truncate"
TruncateStart(p) ==
    /\ pc[truncate] = "idle" /\ rwsem = None /\ inval = None /\ blk[p] # None /\ Spend("move")
    /\ readers = {} \/ ~Rule("rearm-under-invalidate-lock")
    /\ rwsem' = truncate /\ inval' = truncate
    /\ at' = [at EXCEPT ![truncate] = p] /\ work' = [work EXCEPT ![truncate] = {p}]
    /\ Go(truncate, IF Rule("disarm-before-free") /\ Rule("disarm-before-cache") THEN "lock" ELSE "unmap")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, mmap, readers, dio, reading, rearming, candidates, fw,
                   found, scan, failed, must>>

\* Nothing of the page in the page cache.
NotCached(t, p, next) ==
    /\ pc[t] = "unmap" /\ ~Cached(p) /\ Go(t, next)
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, locks, candidates, work, at, found, scan, failed, must, fw, left>>

TruncateFree ==
    /\ pc[truncate] = "free" /\ Go(truncate, "idle")
    /\ blk' = [blk EXCEPT ![at[truncate]] = None]
    /\ rwsem' = None /\ inval' = None /\ at' = [at EXCEPT ![truncate] = None]
    /\ UNCHANGED <<mem, hw, frames, data, disk, ver, other, ctrl, pages, lock, dead, mmap, readers, dio, reading, rearming,
                   candidates, work, found, scan, failed, must, fw, left>>

Truncate ==
    LET p == at[truncate]
        next == IF Rule("disarm-before-cache") THEN "free" ELSE "lock"
    IN  /\ truncate \in Threads
        /\ \/ \E q \in Mine : TruncateStart(q)
           \/ Unmap(truncate, p) \/ TakeOut(truncate, p, next) \/ NotCached(truncate, p, next)
           \/ TruncateFree

Other ==
    /\ "other" \in Threads
    /\ \/ Spend("move") /\ \E b \in FreeBlocks : other' = other \cup {b} /\ disk' = [disk EXCEPT ![b] = Foreign]
       \/ \E b \in other : other' = other \ {b} /\ UNCHANGED <<disk, left>>
    /\ UNCHANGED <<mem, hw, frames, data, blk, ver, ctrl, pages, locks, candidates, thread, fw>>

-----------------------------------------------------------------------------
(* Direct write of one page: count the write (hwdp_denied), disarm, write the block, drop the page if it was cached meanwhile. *)

direct == "dio"
DioStart(p) ==
    /\ pc[direct] = "idle" /\ rwsem = None /\ blk[p] # None /\ ~Cached(p) /\ Spend("write")
    /\ rwsem' = direct /\ dio' = Rule("count-before-disarm")
    /\ at' = [at EXCEPT ![direct] = p] /\ work' = [work EXCEPT ![direct] = {p}] /\ Go(direct, "lock")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, inval, mmap, readers, reading, rearming, candidates, fw,
                   found, scan, failed, must>>

DioWrite ==
    LET p == at[direct] IN
    /\ pc[direct] = "write" /\ Go(direct, "unmap")
    /\ dio' = TRUE /\ ver' = [ver EXCEPT ![p] = @ + 1]
    /\ disk' = [disk EXCEPT ![blk[p]] = Bytes(p, ver[p] + 1)]
    /\ UNCHANGED <<mem, hw, frames, data, blk, other, ctrl, pages, lock, dead, rwsem, inval, mmap, readers, reading, rearming,
                   candidates, work, at, found, scan, failed, must, fw, left>>

DioEnd ==
    /\ pc[direct] = "end" /\ Go(direct, "idle") /\ dio' = FALSE /\ rwsem' = None /\ at' = [at EXCEPT ![direct] = None]
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, inval, mmap, readers, reading, rearming, candidates,
                   work, found, scan, failed, must, fw, left>>

Dio ==
    LET p == at[direct] IN
    /\ direct \in Threads
    /\ \/ \E q \in Mine : DioStart(q)
       \/ DioWrite
       \/ Unmap(direct, p) \/ TakeOut(direct, p, "end") \/ NotCached(direct, p, "end")
       \/ DioEnd

-----------------------------------------------------------------------------
(* Direct reads, by anyone who may read the file. They overlap, so one may be under way at every moment, for ever. *)

Reader ==
    /\ "reader" \in Threads /\ reading' = ~reading
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, rwsem, inval, mmap, readers, dio, rearming, candidates, thread,
                   fw, left>>

-----------------------------------------------------------------------------
(* Moving a page to another block (defragmentation), with invalidate_lock held for writing. *)

move == "move"
MoveStart(p) ==
    /\ pc[move] = "idle" /\ rwsem = None /\ inval = None /\ blk[p] # None /\ ~dirty[p] /\ FreeBlocks # {} /\ Spend("move")
    /\ readers = {} \/ ~Rule("move-under-invalidate-lock")
    /\ rwsem' = move /\ inval' = IF Rule("move-under-invalidate-lock") THEN move ELSE inval
    /\ at' = [at EXCEPT ![move] = p] /\ work' = [work EXCEPT ![move] = {p}] /\ Go(move, "lock")
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, mmap, readers, dio, reading, rearming, candidates, fw,
                   found, scan, failed, must>>

MoveWrite ==
    LET p == at[move] IN
    /\ pc[move] = "write" /\ Go(move, "end")
    /\ \/ \E b \in FreeBlocks : disk' = [disk EXCEPT ![b] = disk[blk[p]]] /\ blk' = [blk EXCEPT ![p] = b]
       \/ FreeBlocks = {} /\ UNCHANGED <<disk, blk>>
    /\ UNCHANGED <<mem, hw, frames, data, ver, other, ctrl, pages, locks, candidates, work, at, found, scan, failed, must, fw,
                   left>>

MoveEnd ==
    /\ pc[move] = "end" /\ Go(move, "idle") /\ rwsem' = None /\ inval' = None /\ at' = [at EXCEPT ![move] = None]
    /\ UNCHANGED <<mem, hw, frames, data, file, pages, lock, dead, mmap, readers, dio, reading, rearming, candidates,
                   work, found, scan, failed, must, fw, left>>

Move == move \in Threads /\ ((\E p \in Mine : MoveStart(p)) \/ MoveWrite \/ MoveEnd)
=============================================================================
