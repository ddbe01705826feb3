// The ranks of a trainer that publish together, as threads of a test.
#pragma once

#include "runtime/collective/collectives.hpp"
#include "runtime/model/weights_gate.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::weights {

// A gang of connected ranks; `each` runs on all of them at once.
class ConnectedRanks {
 public:
  explicit ConnectedRanks(int size) {
    const test::TempFolder folder;
    for (int rank = 0; rank < size; ++rank) {
      collective::RankOptions options;
      options.gang = {core::RunId{7}, "policy", 1};
      options.rank = rank;
      options.size = size;
      options.window_bytes = 1 << 16;
      gangs_.push_back(std::make_unique<collective::Collectives>(options));
    }
    each([&](collective::Collectives& gang) {
      collective::FolderRendezvous rendezvous(folder.path());
      const auto connected = gang.connect(rendezvous);
      TROUPE_CHECK(connected.has_value(), "connecting ranks");
    });
  }
  std::size_t size() const { return gangs_.size(); }
  collective::Collectives& of(std::size_t rank) { return *gangs_[rank]; }
  void each(const std::function<void(collective::Collectives&)>& body) {
    std::vector<std::jthread> threads;
    for (const auto& gang : gangs_)
      threads.emplace_back([&] { body(*gang); });
  }

 private:
  std::vector<std::unique_ptr<collective::Collectives>> gangs_;
};

// Shows parameters part by part; whatever is not shown is NaN meanwhile.
inline std::function<core::Result<void>(const Offer::See&)> parts_of(
    const model::ParamStore& params) {
  return [&params](const Offer::See& see) -> core::Result<void> {
    model::ParamStore window(params.spec());
    constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(window.data(), window.size(), kAbsent);
    const auto parts = model::ranges_of_parts(params.spec(), params.layout());
    for (std::size_t part = params.spec().tied ? 1 : 0; part < parts.size(); ++part) {
      for (const core::Range range : parts[part]) {
        std::copy(params.data() + range.begin, params.data() + range.end,
                  window.data() + range.begin);
        see(range, window.data());
        std::fill(window.data() + range.begin, window.data() + range.end, kAbsent);
      }
    }
    return {};
  };
}

// Publishers of all ranks. `divided`: the weights come part by part.
class RankSources {
 public:
  RankSources(const model::ModelSpec& spec,
              std::size_t ranks,
              bool divided = false,
              kernels::PanelDtype image = kernels::PanelDtype::kF32)
      : ranks_(static_cast<int>(ranks)), params_(spec), publishers_(ranks), divided_(divided) {
    ranks_.each([&](collective::Collectives& gang) {
      PublisherOptions options;
      options.image = image;
      options.gang = &gang;
      auto made = SharedWeightPublisher::create(options, team_);
      TROUPE_CHECK(made.has_value(), "a publisher");
      publishers_[static_cast<std::size_t>(gang.rank())] = std::move(*made);
    });
  }

  WeightLocation publish(core::Version version) {
    write_version(params_, version);
    WeightLocation at;
    ranks_.each([&](collective::Collectives& gang) {
      Offer offer;
      offer.version = version;
      offer.master = &params_;
      if (divided_) offer.each_part = parts_of(params_);
      auto location = of(static_cast<std::size_t>(gang.rank())).publish(offer);
      TROUPE_CHECK(location.has_value(), "publishing");
      if (gang.rank() == 0) at = *location;
    });
    return at;
  }
  SharedWeightPublisher& of(std::size_t rank) { return *publishers_[rank]; }
  void lose(std::size_t rank) { publishers_[rank].reset(); }

 private:
  ConnectedRanks ranks_;
  core::SerialTeam team_;
  model::ParamStore params_;
  std::vector<std::unique_ptr<SharedWeightPublisher>> publishers_;
  const bool divided_;
};

}  // namespace troupe::weights
