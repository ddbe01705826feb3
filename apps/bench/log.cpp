// `troupe bench log`: what the experience log costs an update. Groups of random tokens come to a
// ticket book one after the other, each after the log has synced the one before, as on a slow run;
// then the update waits until all are on disk and reads them back, as its commit does. Bytes a
// token, processor time of all threads, and the time that the data role or the policy waits; as
// shares of an update of a run with `--tokens-per-s`.
#include "actors/data/group_log.hpp"
#include "actors/data/limits.hpp"
#include "actors/data/logged_groups.hpp"
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/temporary_folder.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/async/deadline.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/core/rng.hpp"

namespace troupe::bench {
namespace {

struct LogJob {
  std::int64_t groups = 16, samples = 8, new_tokens = 1024;
  double tokens_per_s = 20'000;
  bool reference = true;
};

// Tokens of four characters of text each.
std::vector<experience::Trajectory> random_samples(const LogJob& job, core::Rng& rng) {
  std::vector<experience::Trajectory> samples(static_cast<std::size_t>(job.samples));
  for (experience::Trajectory& sample : samples) {
    for (std::int64_t i = 0; i < job.new_tokens; ++i) {
      sample.tokens.push_back(static_cast<std::int32_t>(rng.next_uniform() * 150'000));
      sample.behaviour.push_back(-static_cast<float>(rng.next_uniform()));
      for (int letter = 0; letter < 4; ++letter)
        sample.text.push_back(static_cast<char>('a' + static_cast<int>(rng.next_uniform() * 26)));
    }
    sample.versions.add(1, static_cast<std::uint64_t>(job.new_tokens));
  }
  return samples;
}

// The costs of one update, in seconds.
struct Costs {
  double processor = 0;
  double put = 0;      // writing the records into the batch, on the data role's strand
  double durable = 0;  // from the last score to the last sync
  double read = 0;     // back, into another book
};

class LogBench {
 public:
  LogBench(const LogJob& job, std::filesystem::path folder)
      : job_(job), folder_(std::move(folder)) {}

  Result<void> run() { return io_.run(async::with_scope(&LogBench::live, this)); }
  const std::vector<Costs>& costs() const { return costs_; }

 private:
  static async::task<Result<void>> live(async::Scope& scope, LogBench* self) {
    actors::RoleContext context;
    context.scope = &scope;
    context.device = &self->device_;
    context.timers = &self->timers_;
    actors::data::GroupLogOptions options;
    options.folder = self->folder_;
    actors::data::GroupLog log(context, std::move(options), [](const std::string&) {});
    for (std::uint64_t update = 0; update <= kRepetitions; ++update) {
      auto updating = self->one_update(&log, update);
      TROUPE_CO_TRY(co_await std::move(updating));
    }
    self->costs_.erase(self->costs_.begin());  // the first warms up
    co_return Result<void>();
  }

  actors::data::TicketBook empty_book() const {
    return {static_cast<std::int32_t>(job_.samples), job_.reference};
  }

  async::task<Result<void>> one_update(actors::data::GroupLog* log, std::uint64_t update) {
    std::vector<std::vector<experience::Trajectory>> groups;
    for (std::int64_t i = 0; i < job_.groups; ++i)
      groups.push_back(random_samples(job_, rng_));
    const double began = processor_seconds();
    Costs costs;
    actors::data::TicketBook book = empty_book();
    book.when_changed(log);
    const auto tickets =
        book.issue({update, static_cast<std::uint32_t>(job_.groups)}, sets_.first());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Stopwatch putting;
      TROUPE_CO_TRY(put(book, tickets[i], std::move(groups[i])));
      costs.put += putting.seconds();
      if (i + 1 < groups.size())
        co_await async::sleep_for(timers_, actors::data::limits::kLogEvery * 6 / 5);
    }
    Stopwatch waiting;
    TROUPE_CO_TRY(co_await log->durable());
    costs.durable = waiting.lap();
    auto reading = log->read(update);
    TROUPE_CO_TRY_ASSIGN(events, co_await std::move(reading));
    const actors::data::TicketBook::SetOf set_of = [this](std::uint64_t) { return sets_.first(); };
    TROUPE_CO_TRY(
        actors::data::logged_groups(empty_book(), update, std::move(events), book, set_of));
    costs.read = waiting.lap();
    costs.processor = processor_seconds() - began;
    costs_.push_back(costs);
    co_return Result<void>();
  }

  Result<void> put(actors::data::TicketBook& book,
                   const experience::Ticket& ticket,
                   std::vector<experience::Trajectory> samples) {
    std::vector<std::vector<float>> reference;
    for (const experience::Trajectory& sample : samples)
      reference.push_back(sample.behaviour);
    const auto count = samples.size();
    TROUPE_TRY(book.put_samples(ticket, std::move(samples), false));
    book.put_scores({ticket, 0, std::vector<std::optional<double>>(count, 0.5),
                     std::vector<std::string>(count)});
    if (job_.reference)
      book.put_logprobs(actors::data::FrozenModel::kReference, ticket, std::move(reference));
    return {};
  }

  const LogJob& job_;
  const std::filesystem::path folder_;
  async::IoThreads io_{1};
  async::SteadyTimers timers_;
  async::DeviceThread device_{"experience log"};
  actors::data::RewardSets sets_{{{"reward", "reward/0", 1}}};
  core::Rng rng_{1};
  std::vector<Costs> costs_;
};

Result<nlohmann::ordered_json> measure(const LogJob& job) {
  TROUPE_TRY_ASSIGN(folder, TemporaryFolder::make("troupe-log"));
  LogBench bench(job, folder.path());
  TROUPE_TRY(bench.run());
  const store::StepLog files(folder.path(), store::system_disk());
  std::uint64_t bytes = 0;
  for (std::uint64_t step = 1; step <= kRepetitions + 1; ++step) {
    TROUPE_TRY_ASSIGN(size, files.size_of(step));
    bytes += size;
  }
  const auto tokens = static_cast<double>(job.groups * job.samples * job.new_tokens);
  const auto middle = [&bench](double Costs::*part) {
    std::vector<double> values;
    for (const Costs& costs : bench.costs())
      values.push_back(costs.*part);
    return median(values);
  };
  const double processor = middle(&Costs::processor);
  const double put = middle(&Costs::put), durable = middle(&Costs::durable);
  const double read = middle(&Costs::read), update_s = tokens / job.tokens_per_s;
  return nlohmann::ordered_json{
      {"bench", "log"},
      {"processor", cli::processor_name()},
      {"groups", job.groups},
      {"samples_per_group", job.samples},
      {"new_tokens", job.new_tokens},
      {"reference", job.reference},
      {"bytes_per_token", static_cast<double>(bytes) / tokens / (kRepetitions + 1)},
      {"cpu_ms", 1e3 * processor},
      {"put_ms", 1e3 * put},
      {"sync_wait_ms", 1e3 * durable},
      {"read_back_ms", 1e3 * read},
      {"tokens_per_s", job.tokens_per_s},
      {"update_s", update_s},
      {"cpu_share_of_core", processor / update_s},
      {"wall_share", (put + durable + read) / update_s}};
}

}  // namespace

Result<void> bench_log(cli::Words words) {
  LogJob job;
  bool as_json = false, no_reference = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench log: cost of the experience log, medians of 3 updates",
          {{"--groups", &job.groups, "groups of an update", false, 1, 1024},
           {"--samples", &job.samples, "samples of a group", false, 2, 256},
           {"--new-tokens", &job.new_tokens, "tokens of a sample", false, 1, 131072},
           {"--tokens-per-s", &job.tokens_per_s, "run whose share is printed", false, 1, 1e9},
           {"--no-reference", &no_reference, "without log-probs of a reference model"},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  job.reference = !no_reference;
  TROUPE_TRY_ASSIGN(figures, measure(job));
  print_figures(figures, as_json);
  return {};
}

}  // namespace troupe::bench
