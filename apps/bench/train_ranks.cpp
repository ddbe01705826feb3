#include "apps/bench/train_ranks.hpp"

#include <string>

namespace troupe::bench {

core::Result<std::unique_ptr<TrainRanks>> TrainRanks::start(TrainJob& job) {
  auto ranks = std::make_unique<TrainRanks>();
  if (job.ranks == 1) return ranks;
  if (job.rank >= job.ranks || (job.rank > 0) == job.folder.empty()) {
    return core::fail(
        core::ErrorCode::kConfig,
        "troupe bench train: --rank and --folder are set by rank 0, which starts the others",
        "leave them out");
  }
  if (job.rank == 0) {
    TROUPE_TRY_ASSIGN(folder, TemporaryFolder::make("troupe-ranks"));
    job.folder = folder.path().string();
    ranks->folder_.emplace(std::move(folder));
    TROUPE_TRY(ranks->start_others(job));
  }
  collective::RankOptions options;
  options.gang = {core::RunId{1}, "bench", 1};
  options.rank = static_cast<int>(job.rank);
  options.size = static_cast<int>(job.ranks);
  ranks->gang_ = std::make_unique<collective::Collectives>(options);
  collective::FolderRendezvous rendezvous(job.folder);
  TROUPE_TRY(ranks->gang_->connect(rendezvous));
  job.gang = {ranks->gang_.get(), static_cast<int>(job.zero_stage)};
  return ranks;
}

core::Result<void> TrainRanks::start_others(const TrainJob& job) {
  for (std::int64_t rank = 1; rank < job.ranks; ++rank) {
    core::ChildSpec spec;
    spec.words = {"troupe-bench", "train", "--json"};
    const auto flag = [&](const std::string& name, const std::string& value) {
      spec.words.push_back(name);
      spec.words.push_back(value);
    };
    const auto number = [&](const std::string& name, std::int64_t value) {
      flag(name, std::to_string(value));
    };
    flag("--model", job.model);
    flag("--objective", job.objective);
    flag("--dtype", job.dtype);
    flag("--device", job.device);
    flag("--folder", job.folder);
    number("--prompts", job.prompts);
    number("--samples", job.samples);
    number("--prompt-tokens", job.prompt_tokens);
    number("--new-tokens", job.new_tokens);
    number("--shortest", job.shortest);
    number("--micro-tokens-max", job.micro_tokens_max);
    number("--lora", job.lora_rank);
    number("--lanes", job.lanes);
    number("--threads", job.threads);
    number("--ranks", job.ranks);
    number("--zero-stage", job.zero_stage);
    number("--rank", rank);
    spec.this_program = true;
    TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("another rank", std::move(spec)));
    others_.push_back(std::move(child));
  }
  return {};
}

core::Result<void> TrainRanks::add_up(TrainFigures& figures) {
  if (gang_ == nullptr) return {};
  struct Used {
    double cpu_s = 0, sent_bytes = 0;
  };
  std::vector<Used> all(static_cast<std::size_t>(gang_->size()));
  std::vector<collective::Place> into;
  for (Used& used : all)
    into.push_back({&used, sizeof used});
  const Used mine{figures.cost.cpu_s, figures.sent_bytes};
  TROUPE_TRY(gang_->all_gather({&mine, sizeof mine}, into));
  figures.cost.cpu_s = figures.sent_bytes = 0;
  for (const Used& used : all) {
    figures.cost.cpu_s += used.cpu_s;
    figures.sent_bytes += used.sent_bytes;
  }
  return {};
}

void TrainRanks::wait() {
  for (core::ChildProcess& other : others_)
    other.wait();
}

double least_bytes(const TrainJob& job, const TrainFigures& figures) {
  const std::int64_t rounds = (figures.micro_batches + job.lanes - 1) / job.lanes;
  const std::int64_t passes = rounds * ((job.lanes + job.ranks - 1) / job.ranks);
  const bool divided = job.zero_stage == 3 && job.lora_rank == 0;
  const std::int64_t gathered =
      divided ? passes * (2 * figures.trained - figures.embedding) : figures.trained;
  return 4.0 * static_cast<double>((rounds * figures.trained + gathered) * (job.ranks - 1));
}

}  // namespace troupe::bench
