// Guides over the library's matchers. A guide computes its mask once for each state and copies it
// with the state, so the samples of a group share the work of their first mask.
#include "runtime/guide/guide_maker.hpp"

#include "runtime/guide/library.hpp"

#include <chrono>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe::guide {

namespace {

std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

core::Failure failure_of(troupe_guide_status status, const GuideText& why, std::string_view what) {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message = std::string(what) + ": " + why.str();
  if (status == TROUPE_GUIDE_LIMIT) {
    code = ErrorCode::kResources;
    return fail(code, std::move(message),
                "it takes more than the limits of `troupe doctor` that begin with 'guide'");
  }
  if (status == TROUPE_GUIDE_INTERNAL) code = ErrorCode::kInternal;
  return fail(code, std::move(message));
}

class MatcherGuide final : public engine::TokenGuide {
 public:
  MatcherGuide(const troupe_guide_table& table,
               troupe_guide_matcher* matcher,
               std::int64_t vocab,
               std::string source)
      : table_(table),
        matcher_(matcher),
        source_(std::move(source)),
        words_(engine::mask_words(vocab)) {}
  ~MatcherGuide() override { table_.matcher_free(matcher_); }
  MatcherGuide(const MatcherGuide&) = delete;
  MatcherGuide& operator=(const MatcherGuide&) = delete;

  core::Result<std::unique_ptr<engine::TokenGuide>> clone() const override {
    troupe_guide_matcher* copy = nullptr;
    GuideText why(table_);
    const auto status = table_.matcher_clone(matcher_, &copy, why.out());
    if (status != TROUPE_GUIDE_OK) return failure_of(status, why, "the guide");
    auto made = std::make_unique<MatcherGuide>(table_, copy, 0, "");
    made->words_ = words_;
    made->may_end_ = may_end_;
    made->known_ = known_;
    return std::unique_ptr<engine::TokenGuide>(std::move(made));
  }

  core::Result<engine::GuideMask> mask() override {
    if (!known_) {
      std::int32_t may_end = 0;
      GuideText why(table_);
      const auto began = thread_time();
      const auto status =
          table_.matcher_mask(matcher_, words_.data(), words_.size(), &may_end, why.out());
      if (status != TROUPE_GUIDE_OK) return failure_of(status, why, "the guide's mask");
      const auto took = thread_time() - began;
      if (took > limits::kGuideMask) {
        return fail(ErrorCode::kResources,
                    "the guide's mask took " +
                        std::to_string(
                            std::chrono::duration_cast<std::chrono::microseconds>(took).count()) +
                        " us of a processor, more than the limit of " +
                        std::to_string(limits::kGuideMask.count()) +
                        " ms ('guide mask' of `troupe doctor`)",
                    "give a simpler grammar");
      }
      may_end_ = may_end != 0;
      known_ = true;
    }
    return engine::GuideMask{words_, may_end_};
  }

  core::Result<void> take(std::int32_t token) override {
    known_ = false;
    GuideText why(table_);
    const auto status = table_.matcher_take(matcher_, static_cast<std::uint32_t>(token), why.out());
    if (status == TROUPE_GUIDE_OK) return {};
    return failure_of(status, why, "token " + std::to_string(token) + " in the guide");
  }
  std::string source() const override { return source_; }

 private:
  const troupe_guide_table& table_;
  troupe_guide_matcher* const matcher_;
  const std::string source_;  // empty in a clone
  std::vector<std::uint32_t> words_;
  bool may_end_ = false;
  bool known_ = false;  // words_ and may_end_ are those of the matcher's state
};

troupe_guide_kind code_of(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return TROUPE_GUIDE_JSON_SCHEMA;
    case GrammarKind::kRegex:
      return TROUPE_GUIDE_REGEX;
    case GrammarKind::kLark:
      break;
  }
  return TROUPE_GUIDE_LARK;
}

}  // namespace

struct GuideMaker::Vocabulary {
  ~Vocabulary() {
    if (raw != nullptr) table->vocabulary_free(raw);
  }
  core::Result<void> read();

  ReadTokenizer tokenizer;
  std::int64_t vocab = 0;
  GuideBounds bounds;
  std::mutex mutex;  // guards the reading
  const troupe_guide_table* table = nullptr;
  troupe_guide_vocabulary* raw = nullptr;  // null until it was read
};

core::Result<void> GuideMaker::Vocabulary::read() {
  const std::lock_guard lock(mutex);
  if (raw != nullptr) return {};
  TROUPE_TRY_SET(table, library());
  TROUPE_TRY_ASSIGN(json, tokenizer());
  const troupe_guide_limits within{.grammar_symbols = bounds.symbols,
                                   .compile_fuel = bounds.compile_steps,
                                   .mask_fuel = bounds.mask_steps,
                                   .mask_items = bounds.mask_items,
                                   .row_items = bounds.row_items,
                                   .lexer_states = bounds.states};
  GuideText why(*table);
  const auto status = table->vocabulary_new(view_of(json), static_cast<std::uint32_t>(vocab),
                                            &within, &raw, why.out());
  if (status == TROUPE_GUIDE_OK) return {};
  return fail(ErrorCode::kUnsupported,
              "this model's tokens cannot be guided by a grammar: " + why.str());
}

GuideMaker::GuideMaker(ReadTokenizer tokenizer, std::int64_t vocab, const GuideBounds& bounds)
    : state_(std::make_shared<Vocabulary>()) {
  state_->tokenizer = std::move(tokenizer);
  state_->vocab = vocab;
  state_->bounds = bounds;
}

GuideMaker::~GuideMaker() = default;

core::Result<std::shared_ptr<const engine::TokenGuide>> GuideMaker::make(const Grammar& grammar) {
  TROUPE_TRY(check_grammar(grammar));
  TROUPE_TRY(state_->read());
  const troupe_guide_table& table = *state_->table;
  const std::string what = std::string("the ") + name_of(grammar.kind);
  troupe_guide_matcher* matcher = nullptr;
  GuideText why(table);
  const auto status = table.matcher_new(state_->raw, code_of(grammar.kind), view_of(grammar.text),
                                        view_of(kJsonSpace), &matcher, why.out());
  if (status != TROUPE_GUIDE_OK) return failure_of(status, why, what);
  auto guide = std::make_shared<MatcherGuide>(table, matcher, state_->vocab, text_of(grammar));
  TROUPE_TRY_ASSIGN(first, guide->mask());
  bool any = first.may_end;
  for (const std::uint32_t word : first.words)
    any = any || word != 0;
  if (!any) {
    return fail(ErrorCode::kInvalidArgument,
                what + " allows no text that the model's tokens could write", "correct it");
  }
  return std::shared_ptr<const engine::TokenGuide>(std::move(guide));
}

}  // namespace troupe::guide
