#include "runtime/plan/cluster.hpp"

#include "runtime/core/split.hpp"
#include "runtime/core/texts.hpp"

#include <cmath>
#include <optional>
#include <vector>

namespace troupe::plan {
namespace {

constexpr std::int64_t kNodesPlanned_max = 100'000;
constexpr std::int64_t kDevicesOfNode_max = 1024;
constexpr double kCardGb_max = 100'000;
constexpr double kGb = 1e9;

// A whole number from 1 to `most` that is all of `text`.
std::optional<std::int64_t> count_of(std::string_view text, std::int64_t most) {
  const auto count = core::number_of<std::int64_t>(text);
  return count && *count >= 1 && *count <= most ? count : std::nullopt;
}

std::optional<double> gigabytes_of(std::string_view card) {
  const auto dash = card.rfind('-');
  if (dash == card.npos || dash == 0) return std::nullopt;
  const auto gb = core::number_of<double>(card.substr(dash + 1));
  return gb && std::isfinite(*gb) && *gb > 0 && *gb <= kCardGb_max ? gb : std::nullopt;
}

}  // namespace

std::string Cluster::name_of(std::int64_t device) const {
  if (on_host()) return "the host";
  return "node " + std::to_string(node_of(device)) + " device " +
         std::to_string(device % devices_each);
}

std::string Cluster::text() const {
  if (on_host()) return "processors of one host";
  return std::to_string(nodes) + (nodes == 1 ? " node of " : " nodes of ") +
         std::to_string(devices_each) + " " + card;
}

core::Result<Cluster> parse_cluster(std::string_view text) {
  const std::vector<std::string_view> parts = core::split(text, "x");
  const auto wrong = [&] {
    return core::fail(
        core::ErrorCode::kConfig, "--cluster " + std::string(text),
        "expected NODESxDEVICESxCARD-GB or DEVICESxCARD-GB, such as 8x8xH100-80 or 4xA10-24");
  };
  if (parts.size() != 2 && parts.size() != 3) return wrong();
  const auto nodes = parts.size() == 3 ? count_of(parts[0], kNodesPlanned_max) : 1;
  const auto devices = count_of(parts[parts.size() - 2], kDevicesOfNode_max);
  const auto gb = gigabytes_of(parts.back());
  if (!nodes || !devices || !gb) return wrong();
  Cluster cluster;
  cluster.nodes = *nodes;
  cluster.devices_each = *devices;
  cluster.card = parts.back();
  cluster.device_bytes = static_cast<std::int64_t>(std::llround(*gb * kGb));
  return cluster;
}

Cluster processors(std::int64_t host_bytes) {
  Cluster cluster;
  cluster.device_bytes = host_bytes;
  cluster.host_bytes = host_bytes;
  return cluster;
}

}  // namespace troupe::plan
