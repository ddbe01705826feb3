// The printable form of the limits.
#include "runtime/core/limits.hpp"

namespace troupe::core::limits {
namespace {
constexpr auto ms(std::chrono::milliseconds value) { return static_cast<std::uint64_t>(value.count()); }

constexpr Row kTable[] = {
    {"frame", kFrame_bytes_max, "bytes"},
    {"frame segments", kFrameSegments_max, ""},
    {"frame nesting", kFrameNesting_max, ""},
    {"role inbox", kRoleInbox_frames_max, "frames"},
    {"pending calls", kPendingCalls_max, "per role"},
    {"call deadline", ms(kCallDeadline), "ms"},
    {"round deadline", ms(kRoundDeadline), "ms"},
    {"shutdown deadline", ms(kShutdownDeadline), "ms"},
    {"safetensors header", kSafetensorsHeader_bytes_max, "bytes"},
    {"safetensors tensors", kSafetensorsTensors_max, ""},
    {"safetensors rank", kSafetensorsRank_max, ""},
    {"JSON line", kJsonLine_bytes_max, "bytes"},
    {"config file", kConfigFile_bytes_max, "bytes"},
    {"template fuel", kTemplateFuel_max, "instructions"},
    {"template depth", kTemplateDepth_max, ""},
    {"template output", kTemplateOutput_bytes_max, "bytes"},
    {"engine queue", kEngineQueue_groups_max, "groups"},
    {"reward worker calls", kRewardWorkerCalls_max, "before it is recycled"},
    {"reward deadline", ms(kRewardDeadline), "ms"},
    {"reward retries", kRewardRetries_max, ""},
    {"device jobs", kDeviceJobs_max, ""},
    {"", 0, ""},
};
}  // namespace

const Row* table() noexcept { return kTable; }

}  // namespace troupe::core::limits
