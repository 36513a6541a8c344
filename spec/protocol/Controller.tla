----------------------------- MODULE Controller ------------------------------
(* SPDX-License-Identifier: Apache-2.0 *)
(* Descriptor 1 and its controller: resets, and the removal of the namespace, after which another user gets the descriptor.

   ctrl.valid   the SMU takes requests for the descriptor (VALID)
   ctrl.live    Linux arms entries for it
   ctrl.up      the controller takes commands
   ctrl.owner   who has its namespace: "ours"; "leaving", the namespace is removed; "free", to be given away; "theirs"
   ctrl.gen     how often it was given up
   ctrl.gone    the driver has given it up
   ctrl.queued  the worker is to disarm the areas on it *)
EXTENDS Files
-----------------------------------------------------------------------------

driver == "driver"
worker == "worker"
keepC == <<mem, hart, tlb, free, ring, data, disk, blk, ver, other, pages, locks, candidates, at, scan, failed, must, fw>>
Idle == <<slot, cmds, ret, work, found, left>>
Serving == [ctrl EXCEPT !.valid = TRUE, !.live = TRUE, !.up = TRUE]

\* REQ: OS-14: requests fail from now on; then the controller is disabled.
Stop(owner) ==
    /\ pc[driver] = "idle" /\ ctrl.owner = "ours" /\ Go(driver, "disable")
    /\ ctrl' = [ctrl EXCEPT !.owner = owner, !.live = FALSE, !.queued = TRUE, !.valid = ~Rule("stop-before-disable")]
    /\ UNCHANGED <<slot, cmds, ret, work, found>> /\ UNCHANGED keepC

\* Until the driver has seen the controller stopped, commands may still complete. Then they are gone.
Disable ==
    /\ pc[driver] = "disable" /\ Go(driver, "release")
    /\ ctrl' = [ctrl EXCEPT !.up = FALSE]
    /\ cmds' = IF Rule("release-when-stopped") THEN {c \in cmds : DescOf(slot[c[1]].p) # 1} ELSE cmds
    /\ UNCHANGED <<slot, ret, work, found, left>> /\ UNCHANGED keepC

\* REQ: SMU-6, SMU-7: misses at the device fail, frames in quarantine come back.
Release ==
    LET its(s) == ~Strange(s) \/ ~Rule("release-of-descriptor")
        ended == {s \in Slots : slot[s].st \in {"io", "timeout"} /\ Rule("answer-at-release") /\ its(s)}
        over == {s \in Slots : slot[s].st = "quarantine" /\ its(s)}
    IN  /\ pc[driver] = "release" /\ Go(driver, IF ctrl.owner = "leaving" THEN "removed" ELSE "renew")
        /\ slot' = [s \in Slots |-> IF s \in over THEN IdleSlot
                                    ELSE IF s \in ended THEN [slot[s] EXCEPT !.st = "refused", !.f = None] ELSE slot[s]]
        /\ ret' = ret \cup {slot[s].f : s \in ended \cup over}
        /\ ctrl' = IF ctrl.owner # "leaving" THEN ctrl
                   ELSE IF Rule("disarm-before-descriptor-freed") THEN [ctrl EXCEPT !.gone = TRUE, !.queued = TRUE]
                   ELSE [ctrl EXCEPT !.owner = "free", !.gen = @ + 1]
        /\ UNCHANGED <<cmds, work, found, left>> /\ UNCHANGED keepC

Renew ==
    /\ pc[driver] = "renew" /\ Go(driver, "idle") /\ ctrl' = Serving
    /\ UNCHANGED Idle /\ UNCHANGED keepC

\* The descriptor serves another namespace.
GiveAway ==
    /\ pc[driver] = "removed" /\ ctrl.owner = "free" /\ Go(driver, "over")
    /\ ctrl' = [Serving EXCEPT !.owner = "theirs"]
    /\ UNCHANGED Idle /\ UNCHANGED keepC

\* The worker disarms the areas on a descriptor that was stopped. If the driver had given the descriptor up before, no entry names
\* it after that.
WorkStart ==
    /\ pc[worker] = "idle" /\ ctrl.queued /\ ctrl' = [ctrl EXCEPT !.queued = FALSE]
    /\ Go(worker, "lock") /\ work' = [work EXCEPT ![worker] = Mine] /\ found' = [found EXCEPT ![worker] = ctrl.gone]
    /\ UNCHANGED <<slot, cmds, ret, left>> /\ UNCHANGED keepC

WorkEnd ==
    LET free_it == IF Rule("gone-before-disarm") THEN found[worker] ELSE ctrl.gone IN
    /\ pc[worker] = "over" /\ Go(worker, "idle") /\ found' = [found EXCEPT ![worker] = None]
    /\ ctrl' = IF free_it THEN [ctrl EXCEPT !.owner = "free", !.gen = @ + 1, !.gone = FALSE] ELSE ctrl
    /\ UNCHANGED <<slot, cmds, ret, work, left>> /\ UNCHANGED keepC

ControllerStep(t) ==
    \/ t = driver /\ (Disable \/ Release \/ Renew \/ GiveAway)
    \/ t = worker /\ (WorkStart \/ WorkEnd)
Controllers == {driver, worker} \cap Threads
Controller ==
    \/ \E t \in Controllers : ControllerStep(t)
    \/ driver \in Threads /\ ((Spend("reset") /\ Stop("ours")) \/ (Spend("remove") /\ Stop("leaving")))
==============================================================================
