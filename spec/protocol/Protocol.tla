------------------------------ MODULE Protocol -------------------------------
(* SPDX-License-Identifier: Apache-2.0 *)
(* The race between hardware and the operating system for page table entries, frames and blocks. README.md says what is
   modelled and what not. Here: all steps together, and what must hold. *)
EXTENDS Controller
-----------------------------------------------------------------------------

HartStep(h) == Accept(h) \/ Fault(h) \/ Disarming(h) \/ Fill(h)
SlotStep(s) == Lookup(s) \/ Install(s) \/ Mark(s) \/ Answer(s)
Device == \E c \in cmds : Complete(c)
Withdrawals == \E t \in Withdrawers : Withdraw(t)
Adoption == \E k \in Passes : Pted(k)
Rearming == \E t \in Rearmers : Rearm(t)

Next ==
    \/ \E h \in Harts : HartStep(h) \/ Interrupt(h) \/ \E p \in Pages : Touch(h, p) \/ KernelTouch(h, p) \/ Store(h, p)
    \/ \E s \in Slots : SlotStep(s) \/ Timeout(s)
    \/ Device \/ Controller
    \/ Refill \/ TakeReturns \/ Adoption \/ Sync \/ Reclaim
    \/ Withdrawals \/ Rearming
    \/ Truncate \/ Other \/ Dio \/ Reader \/ Move \/ Munmap \/ Fork
    \/ \E p \in Pages : Write(p) \/ WriteBack(p)

Safety == Init /\ [][Next]_vars

(* Progress: hardware, and threads that have begun, go on (weak fairness). *)
Fairness ==
    /\ \A h \in Harts : WF_vars(HartStep(h))
    /\ \A s \in Slots : WF_vars(SlotStep(s))
    /\ WF_vars(Device) /\ WF_vars(Refill) /\ WF_vars(TakeReturns)
    /\ \A k \in Passes : WF_vars(Pted(k))
    /\ \A t \in Rearmers : WF_vars(Rearm(t))
    /\ \A t \in Controllers : WF_vars(ControllerStep(t))
    /\ \A t \in Withdrawers : WF_vars(Withdraw(t))
    /\ WF_vars(MunmapStep)
Spec == Safety /\ Fairness

-----------------------------------------------------------------------------
(* What must hold. *)

Valid(p) == pte[p].k \in {"unsynced", "synced"}
HeldBySlot(s) ==
    \/ slot[s].st \in {"io", "pte", "timeout", "quarantine"}
    \/ slot[s].st \in {"pmd", "pud"} /\ ~Rule("pte-first")
Homes(f) ==
    Cardinality({x \in {free, ring, ret} : f \in x})
    + Cardinality({s \in Slots : slot[s].f = f /\ HeldBySlot(s)})
    + Cardinality({p \in Pages : pte[p] = Entry("unsynced", f)})
    + Cardinality({p \in Pages : cache[p] = f})

\* REQ: SMU-5, OS-5: every frame is in exactly one place.
NoFrameLost == \A f \in Frames : Homes(f) >= 1
NoFrameTwice == \A f \in Frames : Homes(f) <= 1

\* REQ: OS-5: no translation leads to a frame that does not belong to the page.
NoFreedFrameReachable ==
    /\ \A p \in Pages : Is(p, "synced") => cache[p] = pte[p].v
    /\ \A h \in Harts : tlb[h] # None =>
          LET p == tlb[h][1] f == tlb[h][2] IN cache[p] = f \/ pte[p] = Entry("unsynced", f)

\* REQ: OS-5, SMU-7: the device writes only frames that the SMU holds for it.
NoFreedFrameWritten ==
    \A c \in cmds : slot[c[1]].f = c[2] /\ slot[c[1]].st \in {"io", "timeout", "quarantine"}

\* REQ: OS-2: one file page, one frame.
OneFrame == \A p \in Pages : Cached(p) => pte[p].k \notin {"armed", "unsynced"}

\* REQ: OS-3: no armed entry outlives its block; nobody reads another user's bytes.
NoStaleBlock ==
    \A p \in Pages :
        /\ Is(p, "armed") => pte[p].v = blk[p] /\ (DescOf(p) # 1 \/ ctrl.owner # "theirs")
        /\ Valid(p) => data[pte[p].v] # Foreign
        /\ Cached(p) => blk[p] # None

\* REQ: OS-2: mapped and cached pages have the bytes that were written last, except during a direct write to the page.
Writing(p) == direct \in Threads /\ at[direct] = p /\ pc[direct] \in {"unmap", "tlb", "remove"}
NoStaleBytes ==
    \A p \in Pages : ~Writing(p) =>
        /\ Valid(p) => data[pte[p].v] = Bytes(p, ver[p])
        /\ Cached(p) => data[cache[p]] = Bytes(p, ver[p])

\* REQ: OS-6: an unsynced page is found: it is marked, or about to be marked, or kpted is about to look at it.
NoLostPage ==
    \A k \in Passes : \A p \in Pages : AreaOf(p) = PassOf[k] /\ Is(p, "unsynced") =>
        LET t == TableOf(p) a == AreaOf(p) IN
        \/ \E s \in Slots : slot[s].p = p /\ slot[s].st \in {"pmd", "pud"}
        \/ pmd[t] /\ (pud[SpaceAt(a)] \/ hint[a])
        \/ pmd[t] /\ pc[k] \in {"share", "hint", "tables", "scan"} /\ t \in work[k]
        \/ pmd[t] /\ \E j \in Passes : PassOf[j] \in Sharers(a) /\ pc[j] = "share"
        \/ pc[k] = "scan" /\ (p \in scan[k] \/ (failed[k] /\ t = Least(work[k])))

\* REQ: OS-8: pages that were unsynced when a sync began are adopted when it ends.
SyncComplete == sync \in Threads /\ pc[sync] = "over" => \A p \in must : ~Is(p, "unsynced")

\* REQ: OS-4, OS-5: nobody uses page tables that are freed.
NoFreedTable ==
    ~table => /\ \A p \in Mine : Is(p, "empty")
              /\ \A s \in Slots : Live(s) => slot[s].p \notin Mine
              /\ \A h \in Harts : hart[h].st \in {"request", "wait"} => hart[h].p \notin Mine
              /\ \A h \in Harts : tlb[h] # None => tlb[h][1] \notin Mine

\* REQ: ISA-3: kernel code, which may hold a spinlock, never waits for a device.
NoKernelWait == \A h \in Harts : hart[h].kernel => hart[h].st \notin {"request", "wait"}

\* REQ: SMU-8: a wait for a fence never includes a wait for another drive.
NoWaitForStrangers == \A t \in Threads : \A s \in fw[t] : ~Strange(s)

\* No miss fails because another user's descriptor is stopped, released or given away.
NoDenialByReset == \A s \in Slots : slot[s].st = "refused" => ~Strange(s)

\* REQ: OS-8: fork copies neither armed nor unsynced entries.
NoEntryCopied == fork \in Threads /\ pc[fork] = "copy" => \A p \in Mine : pte[p].k \in {"empty", "synced"}

\* A page that hardware could serve is armed, or remembered as a candidate.
NoPageForgotten ==
    Rearmers # {} /\ ~dead => \A p \in Mine : Is(p, "empty") /\ ~Cached(p) /\ blk[p] # None =>
        \/ p \in todo
        \/ \E t \in Rearmers : p \in work[t]
        \/ PteLocked(p)

\* Nobody can prevent hardware paging of a file by reading it: a page that hardware could serve and that is not armed is armed or
\* cached in the end.
Servable(p) == Is(p, "empty") /\ ~Cached(p) /\ Has(p) /\ ctrl.live /\ ~dead
NoDenialByReads == Rearmers # {} => \A p \in Mine : Servable(p) ~> ~Servable(p)

\* SMU-6 and progress: every access is answered in the end, kpted finds every page, munmap ends.
EveryMissAnswered == \A h \in Harts : hart[h].st # "idle" ~> hart[h].st = "idle"
EveryPageAdopted == \A p \in Pages : Is(p, "unsynced") ~> ~Is(p, "unsynced")
MunmapEnds == munmap \in Threads => (mmap = munmap ~> mmap = None)
==============================================================================
