// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A valgrind tool that writes every memory access of a program into a pipe, as a record of 8 bytes.
 *
 * `trapless-pagesim record` compiles it against the installed valgrind (Debian's package has the headers and libcoregrind.a) and
 * runs it with --records=PIPE. It records the same accesses as the tool lackey (docs/decisions/099-recorder.md), but faster: it
 * stores a record with two or three instructions of the host, where lackey formats and writes a line of text.
 *
 * A record, from bit 0: kind (2 bits: fetch, load, store, or load and store), more (5 bits), bytes - 1 (9 bits), address (48
 * bits, signed). `more` instructions follow the access before the next record. Each is fetched from the line of the last fetch.
 */
#include "pub_tool_basics.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_options.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

#define LINE_SHIFT 6
/* A batch of records (128 KiB) is written at once. SLACK records may follow it before the number of records is checked again. */
#define BATCH 16384
#define SLACK 8192
/* Largest number of accesses for which no code was added yet. The added code stores them together and loads the position once. */
#define PENDING 64
#define MOST_BYTES 512
#define MOST_MORE 31

/* Moves a file to a descriptor that the program does not use. Valgrind's core exports it, but its headers for tools lack it. */
extern Int VG_(safe_fd)(Int fd);

enum { FETCH, LOAD, STORE, CHANGE };

typedef struct {
   UInt kind, bytes, more;
   Addr address;  /* of a fetch */
   IRExpr *at;    /* address of another access */
   IRExpr *guard; /* the access happens only if this is true; NULL: always */
} Access;

static const HChar *clo_records;
static Int pipe_fd = -1;
static ULong records[BATCH + SLACK];
static ULong *position = records;

/* The superblock being instrumented. */
static Access pending[PENDING];
static Int n_pending;
static Int since_check;
/* Line of the last fetch. Valid if the last record can count more instructions. */
static Addr fetch_line;
static Bool can_grow;

/* Writes the stored records. A forked child has no pipe, so its records are dropped. */
static void flush(void)
{
   const HChar *from = (const HChar *)records;
   Int left = (const HChar *)position - from;
   position = records;
   while (pipe_fd >= 0 && left > 0) {
      Int done = VG_(write)(pipe_fd, from, left);
      if (done == -VKI_EINTR)
         continue;
      if (done <= 0)
         VG_(exit)(1); /* The reader has gone. */
      from += done;
      left -= done;
   }
}

static IRExpr *assign(IRSB *sb, IRType type, IRExpr *value)
{
   IRTemp temp = newIRTemp(sb->tyenv, type);
   addStmtToIRSB(sb, IRStmt_WrTmp(temp, value));
   return IRExpr_RdTmp(temp);
}

static IRExpr *number(ULong value)
{
   return IRExpr_Const(IRConst_U64(value));
}

static IRExpr *load_position(IRSB *sb)
{
   return assign(sb, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, number((HWord)&position)));
}

/* Adds code that calls flush() if a batch is full. */
static void check(IRSB *sb)
{
   IRExpr *full = IRExpr_Binop(Iop_CmpLE64U, number((HWord)(records + BATCH)), load_position(sb));
   IRDirty *call = unsafeIRDirty_0_N(0, "flush", VG_(fnptr_to_fnentry)(&flush), mkIRExprVec_0());
   call->guard = assign(sb, Ity_I1, full);
   addStmtToIRSB(sb, IRStmt_Dirty(call));
   since_check = 0;
}

/* Adds the code that stores the records of all pending accesses. */
static void store_pending(IRSB *sb)
{
   IRExpr *to = n_pending ? load_position(sb) : NULL;
   ULong offset = 0;
   for (Int i = 0; i < n_pending; i++) {
      const Access *access = &pending[i];
      ULong low = access->kind | access->more << 2 | (access->bytes - 1) << 7;
      IRExpr *value = number((ULong)access->address << 16 | low);
      if (access->at != NULL) {
         IRExpr *high = assign(sb, Ity_I64, IRExpr_Binop(Iop_Shl64, access->at, IRExpr_Const(IRConst_U8(16))));
         value = assign(sb, Ity_I64, IRExpr_Binop(Iop_Or64, high, number(low)));
      }
      IRExpr *place = offset ? assign(sb, Ity_I64, IRExpr_Binop(Iop_Add64, to, number(offset))) : to;
      addStmtToIRSB(sb, IRStmt_Store(Iend_LE, place, value));
      offset += sizeof *records;
      if (access->guard != NULL) {
         IRExpr *behind = assign(sb, Ity_I64, IRExpr_Binop(Iop_Add64, to, number(offset)));
         to = assign(sb, Ity_I64, IRExpr_ITE(access->guard, behind, place));
         offset = 0;
      }
   }
   if (n_pending) {
      IRExpr *end = offset ? assign(sb, Ity_I64, IRExpr_Binop(Iop_Add64, to, number(offset))) : to;
      addStmtToIRSB(sb, IRStmt_Store(Iend_LE, number((HWord)&position), end));
   }
   n_pending = 0;
   can_grow = False;
   if (since_check > SLACK / 2)
      check(sb);
}

static Access *add(IRSB *sb, UInt kind, UInt bytes)
{
   if (n_pending == PENDING)
      store_pending(sb);
   tl_assert(bytes >= 1 && bytes <= MOST_BYTES);
   since_check++;
   Access *access = &pending[n_pending++];
   *access = (Access){ .kind = kind, .bytes = bytes };
   return access;
}

static void add_fetch(IRSB *sb, Addr address, UInt bytes)
{
   Addr last = (address + bytes - 1) >> LINE_SHIFT;
   Bool same = address >> LINE_SHIFT == fetch_line && last == fetch_line;
   if (can_grow && same && pending[n_pending - 1].more < MOST_MORE) {
      pending[n_pending - 1].more++;
      return;
   }
   add(sb, FETCH, bytes)->address = address;
   fetch_line = last;
   can_grow = True;
}

static void add_data(IRSB *sb, UInt kind, IRExpr *at, UInt bytes, IRExpr *guard)
{
   Access *last = n_pending > 0 ? &pending[n_pending - 1] : NULL;
   /* A load and a store of the same place are one record, as they are one line of lackey. */
   if (kind == STORE && guard == NULL && last != NULL && last->kind == LOAD && last->guard == NULL && last->more == 0 &&
       last->bytes == bytes && eqIRAtom(last->at, at)) {
      last->kind = CHANGE;
      return;
   }
   Access *access = add(sb, kind, bytes);
   access->at = at;
   access->guard = guard;
   /* If the access does not happen, there is no record that could count more fetches. */
   can_grow = can_grow && guard == NULL;
}

/* Adds the accesses of one statement. They are recorded before the statement runs. */
static void look_at(IRSB *sb, const IRStmt *st)
{
   const IRTypeEnv *types = sb->tyenv;
   IRType result, loaded;
   UInt bytes;
   switch (st->tag) {
   case Ist_IMark:
      add_fetch(sb, st->Ist.IMark.addr, st->Ist.IMark.len ? st->Ist.IMark.len : 1);
      break;
   case Ist_WrTmp:
      if (st->Ist.WrTmp.data->tag == Iex_Load) {
         const IRExpr *load = st->Ist.WrTmp.data;
         add_data(sb, LOAD, load->Iex.Load.addr, sizeofIRType(load->Iex.Load.ty), NULL);
      }
      break;
   case Ist_Store:
      bytes = sizeofIRType(typeOfIRExpr(types, st->Ist.Store.data));
      add_data(sb, STORE, st->Ist.Store.addr, bytes, NULL);
      break;
   case Ist_StoreG:
      bytes = sizeofIRType(typeOfIRExpr(types, st->Ist.StoreG.details->data));
      add_data(sb, STORE, st->Ist.StoreG.details->addr, bytes, st->Ist.StoreG.details->guard);
      break;
   case Ist_LoadG:
      typeOfIRLoadGOp(st->Ist.LoadG.details->cvt, &result, &loaded);
      add_data(sb, LOAD, st->Ist.LoadG.details->addr, sizeofIRType(loaded), st->Ist.LoadG.details->guard);
      break;
   case Ist_Dirty: {
      const IRDirty *call = st->Ist.Dirty.details;
      if (call->mFx == Ifx_Read || call->mFx == Ifx_Modify)
         add_data(sb, LOAD, call->mAddr, call->mSize, NULL);
      if (call->mFx == Ifx_Write || call->mFx == Ifx_Modify)
         add_data(sb, STORE, call->mAddr, call->mSize, NULL);
      break;
   }
   case Ist_CAS:
      bytes = sizeofIRType(typeOfIRExpr(types, st->Ist.CAS.details->dataLo));
      bytes *= st->Ist.CAS.details->dataHi == NULL ? 1 : 2;
      add_data(sb, LOAD, st->Ist.CAS.details->addr, bytes, NULL);
      add_data(sb, STORE, st->Ist.CAS.details->addr, bytes, NULL);
      break;
   case Ist_LLSC:
      if (st->Ist.LLSC.storedata == NULL) {
         add_data(sb, LOAD, st->Ist.LLSC.addr, sizeofIRType(typeOfIRTemp(types, st->Ist.LLSC.result)), NULL);
      } else {
         bytes = sizeofIRType(typeOfIRExpr(types, st->Ist.LLSC.storedata));
         add_data(sb, STORE, st->Ist.LLSC.addr, bytes, NULL);
      }
      break;
   case Ist_Exit:
      store_pending(sb);
      break;
   default:
      break;
   }
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents,
                        const VexArchInfo *host, IRType guest_word, IRType host_word)
{
   IRSB *out = deepCopyIRSBExceptStmts(in);
   Int i = 0;
   n_pending = 0;
   can_grow = False;
   while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark)
      addStmtToIRSB(out, in->stmts[i++]);
   check(out);
   for (; i < in->stmts_used; i++) {
      look_at(out, in->stmts[i]);
      addStmtToIRSB(out, in->stmts[i]);
   }
   store_pending(out);
   return out;
}

static Bool option(const HChar *arg)
{
   return VG_STR_CLO(arg, "--records", clo_records);
}

static void usage(void)
{
   VG_(printf)("    --records=PIPE            pipe for the records\n");
}

static void no_debug_usage(void)
{
}

/* Writes the batch before a call that may replace or kill this process, which would lose it. */
static void before_syscall(ThreadId tid, UInt number_of_call, UWord *args, UInt n_args)
{
   switch (number_of_call) {
   case __NR_execve:
   case __NR_execveat:
   case __NR_kill:
   case __NR_tkill:
   case __NR_tgkill:
      flush();
   }
}

static void after_syscall(ThreadId tid, UInt number_of_call, UWord *args, UInt n_args, SysRes result)
{
}

static void in_child(ThreadId tid)
{
   if (pipe_fd >= 0)
      VG_(close)(pipe_fd);
   pipe_fd = -1;
   position = records;
}

static void begin(void)
{
   Int fd = clo_records ? VG_(fd_open)(clo_records, VKI_O_WRONLY, 0) : -1;
   if (fd < 0) {
      VG_(umsg)("cannot open the pipe of --records\n");
      VG_(exit)(1);
   }
   pipe_fd = VG_(safe_fd)(fd);
}

static void end(Int status)
{
   flush();
}

static void before_options(void)
{
   VG_(details_name)("trapless");
   VG_(details_version)(NULL);
   VG_(details_description)("a recorder of memory accesses");
   VG_(details_copyright_author)("The Trapless project");
   VG_(details_bug_reports_to)("the Trapless project");
   VG_(basic_tool_funcs)(begin, instrument, end);
   VG_(needs_command_line_options)(option, usage, no_debug_usage);
   VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
   VG_(atfork)(NULL, NULL, in_child);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
