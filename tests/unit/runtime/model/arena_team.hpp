// A team with a memory of its own that nobody may touch but the operations of its table, as if it
// were a device's: the pages are open while one runs or numbers are sent, and closed otherwise, so
// that host code that reads or writes a number there ends the test with a fault. And operations are
// looked at before they run: a pointer to the host's memory is a failure of the test. The
// arithmetic is the host's own. One thread.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/team.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

namespace troupe::model {

class ArenaMemory final : public core::Memory {
 public:
  static constexpr std::size_t kSize = std::size_t{1} << 30;

  ArenaMemory()
      : base_(static_cast<char*>(::mmap(
            nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (base_ == MAP_FAILED) std::abort();
  }
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;
  ~ArenaMemory() override { ::munmap(base_, kSize); }

  void* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    const std::size_t size = rounded(bytes);
    if (const auto free = free_.find(size); free != free_.end()) {
      void* const memory = free->second;
      free_.erase(free);
      return memory;
    }
    if (used_ + size > limit_) throw core::OutOfMemory("the arena is full");
    used_ += size;
    return base_ + used_ - size;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    if (memory == nullptr) return;
    ::madvise(memory, rounded(bytes), MADV_DONTNEED);  // zero again
    free_.emplace(rounded(bytes), memory);
  }
  void upload(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  bool on_host() const noexcept override { return false; }

  bool holds(const void* memory) const {
    const auto at = static_cast<const char*>(memory);
    return at >= base_ && at < base_ + kSize;
  }
  // Nothing more can be taken than is in use now.
  void close() { limit_ = used_; }
  void set_limit(std::size_t bytes) { limit_ = bytes; }
  std::size_t most() const { return used_; }  // bytes that were in use at once, or a little more
  void open(bool open) { ::mprotect(base_, kSize, open ? PROT_READ | PROT_WRITE : PROT_NONE); }

 private:
  static std::size_t rounded(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
  void move(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    open(true);
    std::memcpy(to, from, bytes);
    open(false);
  }

  char* const base_;
  std::size_t used_ = 0, limit_ = kSize;
  std::multimap<std::size_t, void*> free_;
};

// The arena of the operation that runs.
inline thread_local ArenaMemory* arena_in_use = nullptr;

// What an operation may be given: numbers, and pointers into the arena.
struct ArenaPointers {
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T) const {}
  void operator()(core::Range) const {}
  void operator()(const void* p) const {
    if (p != nullptr && !arena_in_use->holds(p)) {
      ADD_FAILURE() << "an operation was given a pointer to the host's memory";
      std::abort();  // its results would be of no use
    }
  }
  template <class... T>
  void all(const T&... pointers) const {
    (operator()(pointers), ...);
  }
  void operator()(const kernels::Gemm& g) const {
    all(g.a, g.b.data, g.b.scale, g.c, g.bias, g.residual);
  }
  void operator()(const kernels::PieceGemm& g) const { all(g.a, g.b, g.c, g.sums); }
  void operator()(const kernels::Pack& p) const { all(p.from, p.to.data, p.to.scale); }
  void operator()(const kernels::CopyRows& c) const { all(c.from, c.from_row, c.to, c.to_row); }
  void operator()(const kernels::AddRows& a) const { all(a.a, a.b, a.out); }
  void operator()(const kernels::RmsNorm& n) const { all(n.x, n.weight, n.y, n.inv_rms); }
  void operator()(const kernels::RmsNormBackward& n) const {
    all(n.x, n.weight, n.inv_rms, n.dy, n.dx);
  }
  void operator()(const kernels::RmsNormWeightGrad& n) const {
    all(n.x, n.inv_rms, n.dy, n.dweight);
  }
  void operator()(const kernels::ColumnSum& c) const { all(c.dy, c.sums); }
  void operator()(const kernels::Rope& r) const { all(r.x, r.positions, r.cos, r.sin); }
  void operator()(const kernels::GateMul& g) const { all(g.gate_up, g.y); }
  void operator()(const kernels::GateMulBackward& g) const { all(g.gate_up, g.dy, g.dgate_up); }
  void operator()(const kernels::SoftCap& s) const { all(s.x); }
  void operator()(const kernels::EmbedRows& e) const {
    all(e.panels.data, e.panels.scale, e.table, e.tokens, e.x);
  }
  void operator()(const kernels::EmbedGrad& e) const { all(e.tokens, e.dx, e.table); }
  void operator()(const kernels::KvNumbers& pool) const { operator()(pool.data); }
  void operator()(const kernels::KvWrite& w) const {
    all(w.k, w.v, w.k_pool, w.v_pool, w.slot_begin, w.slots);
  }
  void operator()(const kernels::Attention& a) const {
    all(a.q, a.k_pool, a.v_pool, a.segments, a.block_table, a.out, a.lse);
  }
  void operator()(const kernels::AttentionBackward& a) const {
    all(a.forward, a.dout, a.dq, a.dk_pool, a.dv_pool);
  }
  void operator()(const kernels::MixRows& m) const {
    all(m.y, m.place, m.weight, m.extra, m.extra_weight, m.residual, m.out);
  }
  void operator()(const kernels::VocabRows& v) const {
    all(v.logits, v.inv_temperature, v.block_max, v.block_sum);
  }
  void operator()(const kernels::VocabTargets& t) const { all(t.begin, t.target, t.token); }
  void operator()(const kernels::VocabFinish& v) const {
    all(v.rows, v.lse, v.entropy, v.targets, v.logprobs);
  }
  void operator()(const kernels::VocabGrad& v) const {
    all(v.logits, v.lse, v.entropy, v.targets, v.dlogprobs, v.dentropies);
  }
  void operator()(const kernels::Draws& d) const {
    all(d.rows, d.uniform, d.row, d.token, d.logprob);
  }
  void operator()(const kernels::KeptDraws& d) const {
    all(d.rows, d.uniform, d.row, d.truncation, d.token, d.mass);
  }
  void operator()(const kernels::ChangeLogits& c) const {
    all(c.logits, c.change, c.penalties, c.before);
  }
  void operator()(const kernels::MostLikely& m) const {
    all(m.rows, m.lse, m.row, m.begin, m.token, m.logprob);
  }
  void operator()(const kernels::AdamW& a) const { all(a.param, a.grad, a.m, a.v); }
  void operator()(const kernels::Sgd& s) const { all(s.param, s.grad, s.m); }
  void operator()(const kernels::CompactMoment& c) const {
    all(static_cast<const char*>(c.codes), c.scales, c.numbers);
  }
  void operator()(const kernels::SumSquares& s) const { all(s.x, s.sums); }
};

// The host's operation between opening the arena and closing it.
template <auto kMember>
struct InArena;
template <class R, class... A, R (*kernels::Ops::*kMember)(A...)>
struct InArena<kMember> {
  static R run(A... arguments) {
    (ArenaPointers()(arguments), ...);
    struct Open {
      Open() { arena_in_use->open(true); }
      ~Open() { arena_in_use->open(false); }
    } const open;
    return (kernels::host_ops().*kMember)(arguments...);
  }
};

inline const kernels::Ops& arena_ops() {
#define TROUPE_OP(result, name, parameters) .name = InArena<&kernels::Ops::name>::run,
  static constexpr kernels::Ops kTable = [] {
    kernels::Ops table{
        .name = "arena",
        .head_blocks = std::numeric_limits<std::int64_t>::max(),
#include "kernels/ops.def"
    };
    table.draw = nullptr;  // as on the host
    table.draw_kept = nullptr;
    table.change_logits = nullptr;
    table.restore_logits = nullptr;
    table.most_likely = nullptr;
    return table;
  }();
  return kTable;
}

class ArenaTeam final : public core::TeamRunner {
 public:
  void run(const std::function<void(core::Team)>& region) override {
    arena_in_use = &memory_;
    const kernels::UseOps use(arena_ops());
    region(core::Team{});
  }
  int size() const noexcept override { return 1; }
  ArenaMemory& memory() noexcept override { return memory_; }

 private:
  ArenaMemory memory_;
};

}  // namespace troupe::model
