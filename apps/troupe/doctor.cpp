// `troupe doctor`: reports what this machine offers, tries every family of models, and lists the
// limits that apply. Changes nothing.
#include "apps/cli/device_speeds.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/doctor_models.hpp"
#include "apps/troupe/install_torch.hpp"
#include "kernels/cuda/device_team.hpp"
#include "kernels/cuda/library.hpp"
#include "kernels/ops.hpp"
#include "runtime/collective/nccl_library.hpp"
#include "runtime/core/limit.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/arithmetic.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/store/troupe_home.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace troupe::app {
namespace {

using namespace std::chrono_literals;
using kernels::cuda::DeviceInfo;

#undef TROUPE_LIMIT
#define TROUPE_LIMIT(constant, value, shown, unit) {shown, value, unit},
constexpr core::LimitRow kLimits[] = {
#include "actors/company/limits.def"
#include "actors/controller/limits.def"
#include "actors/data/limits.def"
#include "actors/environment/limits.def"
#include "actors/formula/limits.def"
#include "actors/gang/limits.def"
#include "actors/generator/limits.def"
#include "actors/node/limits.def"
#include "actors/policy/limits.def"
#include "actors/protocol/limits.def"
#include "actors/reward/limits.def"
#include "apps/hub/limits.def"
#include "apps/loggers/limits.def"
#include "apps/pipeline/limits.def"
#include "apps/report/limits.def"
#include "apps/serving/limits.def"
#include "apps/session/limits.def"
#include "runtime/async/limits.def"
#include "runtime/cluster/limits.def"
#include "runtime/collective/limits.def"
#include "runtime/core/limits.def"
#include "runtime/data/limits.def"
#include "runtime/dialects/limits.def"
#include "runtime/engine/limits.def"
#include "runtime/guide/limits.def"
#include "runtime/names/limits.def"
#include "runtime/net/limits.def"
#include "runtime/parse/limits.def"
#include "runtime/store/limits.def"
#include "runtime/tables/limits.def"
#include "runtime/text/limits.def"
#include "runtime/weights/limits.def"
#include "runtime/wire/limits.def"
};

constexpr const char* kDoctorHelp =
    "usage: troupe doctor [--model M] [--run-path DIR]\n"
    "       troupe doctor --gpus [--json]\n"
    "       troupe doctor --install-torch [--yes]\n"
    "\n"
    "Prints processor and kernel level, cores, memory, free disk, LibTorch, NVIDIA GPUs, a trial "
    "of\n"
    "every family of models, and the table of limits.\n"
    "--model M       also look the model up and say what it is\n"
    "--run-path DIR  the disk that holds the run folder (default: the current folder)\n"
    "--gpus          the GPUs alone; with --json as one JSON line, or exit 3 where there is none\n"
    "--install-torch the LibTorch that training needs, made below TROUPE_HOME by pip, which must "
    "be\n"
    "                able to reach its index; says how large it is and asks, unless --yes is "
    "given\n";

void print_processor() {
  constexpr std::pair<kernels::Isa, const char*> kLevels[] = {
      {kernels::Isa::kReference, "reference"},
      {kernels::Isa::kAvx2, "avx2"},
      {kernels::Isa::kAvx512, "avx512"},
  };
  std::string levels;
  for (const auto& [isa, name] : kLevels) {
    if (!kernels::isa_available(isa)) continue;
    if (!levels.empty()) levels += ", ";
    levels += name;
    if (&kernels::ops() == &kernels::ops_for(isa)) levels += " (active)";
  }
  std::printf("processor   %s\n", cli::processor_name().c_str());
  std::printf("kernels     %s; TROUPE_ISA=NAME forces one\n", levels.c_str());
  constexpr kernels::PanelDtype kDtypes[] = {kernels::PanelDtype::kF32, kernels::PanelDtype::kBf16,
                                             kernels::PanelDtype::kInt8,
                                             kernels::PanelDtype::kBf16Compute};
  std::string dtypes;
  for (const kernels::PanelDtype dtype : kDtypes) {
    if (!kernels::panel_dtype_available(kernels::ops(), dtype)) continue;
    if (!dtypes.empty()) dtypes += ", ";
    dtypes += kernels::name_of(dtype);
  }
  std::printf("dtypes      %s (--dtype of weights)\n", dtypes.c_str());
  std::printf("cores       %d usable\n", cli::usable_cores());
}

void print_memory_and_disk(const std::string& run_path) {
  const cli::MemoryFacts memory = cli::memory_facts();
  std::printf("memory      %s free of %s", cli::bytes_text(memory.available_bytes).c_str(),
              cli::bytes_text(memory.total_bytes).c_str());
  if (memory.limit_bytes > 0)
    std::printf(", limited to %s", cli::bytes_text(memory.limit_bytes).c_str());
  const cli::DiskFacts disk = cli::disk_facts(run_path);
  std::printf("\ndisk        %s free of %s (%s)\n", cli::bytes_text(disk.free_bytes).c_str(),
              cli::bytes_text(disk.total_bytes).c_str(), run_path.c_str());
  const std::string home = store::troupe_home().string();
  std::printf("home        %s, for files that all runs share (TROUPE_HOME names another)\n",
              home.empty() ? "none" : home.c_str());
}

// Says which LibTorch training would load, without loading it.
void print_libtorch() {
  const auto found = learn::find_trainers();
  if (!found) {
    std::printf("libtorch    none: %s\n", found.error().message.c_str());
    return;
  }
  const std::string& version = found->torch.version;
  std::printf("libtorch    %s%s%s, for training alone (TROUPE_TORCH names another)\n",
              version.c_str(), version.empty() ? "" : " in ", found->torch.folder.c_str());
}

Result<void> print_model(const std::string& name) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  std::printf("model       %s: %s, %.1f M parameters, context %ld\n", folder.c_str(),
              spec.architecture.c_str(), static_cast<double>(spec.parameter_count()) / 1e6,
              spec.context);
  return {};
}

std::string version_text(int version) {  // 13000 gives "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Result<collective::NcclLibrary> find_nccl() {
  return collective::open_nccl(learn::packages_beside_libtorch());
}

std::string reached_from(const kernels::cuda::Device& device, int ordinal, int devices) {
  std::string list;
  for (int other = 0; other < devices; ++other) {
    if (other == ordinal || !device.reaches(other)) continue;
    list += (list.empty() ? "cuda:" : ", cuda:") + std::to_string(other);
  }
  return list;
}

// The classes of arithmetic that a team can compute in (runtime/model/arithmetic.hpp), without
// those that it has no code of its own for.
std::vector<std::string> classes_of(core::TeamRunner& team, bool tensor_cores) {
  using kernels::PanelDtype;
  std::vector<std::string> names;
  for (const PanelDtype dtype : {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kBf16Compute})
    if (dtype != PanelDtype::kBf16Compute || tensor_cores)
      names.push_back(model::arithmetic_name(team, dtype));
  return names;
}

std::vector<std::string> processor_classes() {
  core::SerialTeam team;
  return classes_of(
      team, kernels::panel_dtype_available(kernels::ops(), kernels::PanelDtype::kBf16Compute));
}

struct GpuFacts {
  DeviceInfo info;
  cli::DeviceSpeeds speeds;
  std::string peers;  // the other GPUs whose memory it reads directly: "cuda:1, cuda:2"
  std::vector<std::string> classes;
};

Result<GpuFacts> look_at_gpu(int ordinal, int devices) {
  TROUPE_TRY_ASSIGN(device, kernels::cuda::open_device(ordinal));
  try {
    kernels::cuda::DeviceTeam team(std::move(device));
    return GpuFacts{team.device().info(), cli::measure_speeds(team.device()),
                    reached_from(team.device(), ordinal, devices), classes_of(team, true)};
  } catch (const std::exception& error) {
    return fail(ErrorCode::kResources, "cuda:" + std::to_string(ordinal) + ": " + error.what());
  }
}

void print_classes() {
  std::printf("arithmetic  %s\n", core::joined(processor_classes()).c_str());
}

void print_gpu(int ordinal, int devices) {
  const auto gpu = look_at_gpu(ordinal, devices);
  if (!gpu) {
    std::printf("gpu         %s\n", gpu.error().message.c_str());
    return;
  }
  const auto& [info, speeds, peers, classes] = *gpu;
  std::printf("gpu         cuda:%d %s, sm_%d%d, %d multiprocessors, %s free of %s\n", ordinal,
              info.name, info.major, info.minor, info.multiprocessors,
              cli::bytes_text(info.free_bytes).c_str(), cli::bytes_text(info.memory_bytes).c_str());
  std::printf(
      "            driver for CUDA %s, reads %.0f GB/s, copies %.0f GB/s, to it %.1f, from "
      "it %.1f GB/s, f32 %.1f, bf16 products %.0f TFLOP/s\n",
      version_text(info.driver_version).c_str(), speeds.read_gb_per_s, speeds.copy_gb_per_s,
      speeds.upload_gb_per_s, speeds.download_gb_per_s, speeds.fma_gflops / 1e3,
      speeds.mma_gflops / 1e3);
  if (devices > 1)
    std::printf("            reads directly from %s\n", peers.empty() ? "no other" : peers.c_str());
  const std::vector<std::string> host = processor_classes();
  std::string wrong;
  for (const std::string& name : classes) {
    const bool exact = !name.starts_with("bf16-compute/");
    if (exact && std::ranges::count(host, name) == 0) wrong += (wrong.empty() ? "" : ", ") + name;
  }
  std::printf("            arithmetic %s\n", core::joined(classes).c_str());
  if (!wrong.empty())
    std::printf("            WRONG: %s is not the processor's; do not use this GPU\n",
                wrong.c_str());
}

// Prints lines for people about each GPU; without a GPU one line says what is missing. Measuring
// the speeds takes about a second for each.
void print_gpus() {
  const auto state = kernels::cuda::library_state();
  if (state.devices == 0) {
    std::printf("gpu         none: %s\n", state.why_none.c_str());
    return;
  }
  for (int i = 0; i < state.devices; ++i)
    print_gpu(i, state.devices);
  const auto nccl = find_nccl();
  std::printf("nccl        %s\n", (nccl ? nccl->version_text() : nccl.error().message).c_str());
}

// Prints one JSON line for programs. Error kResources: there is no GPU.
Result<void> print_gpus_json() {
  const auto state = kernels::cuda::library_state();
  if (state.devices == 0) return fail(ErrorCode::kResources, "no GPU: " + state.why_none);
  nlohmann::json gpus = nlohmann::json::array();
  for (int i = 0; i < state.devices; ++i) {
    TROUPE_TRY_ASSIGN(gpu, look_at_gpu(i, state.devices));
    const auto& [info, speeds, peers, classes] = gpu;
    gpus.push_back({{"device", "cuda:" + std::to_string(i)},
                    {"name", info.name},
                    {"sm", info.major * 10 + info.minor},
                    {"multiprocessors", info.multiprocessors},
                    {"memory_bytes", info.memory_bytes},
                    {"driver_cuda", version_text(info.driver_version)},
                    {"read_gb_per_s", speeds.read_gb_per_s},
                    {"copy_gb_per_s", speeds.copy_gb_per_s},
                    {"upload_gb_per_s", speeds.upload_gb_per_s},
                    {"download_gb_per_s", speeds.download_gb_per_s},
                    {"fma_gflops", speeds.fma_gflops},
                    {"mma_gflops", speeds.mma_gflops},
                    {"arithmetic", classes}});
  }
  const auto nccl = find_nccl();
  const nlohmann::json line{{"doctor", "gpus"},
                            {"library", state.path},
                            {"gpus", gpus},
                            {"nccl", nccl ? nccl->version_text() : std::string()}};
  std::printf("%s\n", line.dump().c_str());
  return {};
}

Result<void> run_doctor_gpus(cli::Words words) {
  if (words.empty()) {
    print_gpus();
    return {};
  }
  if (words.size() == 1 && words[0] == "--json") return print_gpus_json();
  return fail(ErrorCode::kConfig, "doctor --gpus: unknown flag '" + words[0] + "'",
              "there is --json");
}

Result<void> run_install_torch(cli::Words words) {
  if (words.empty()) return install_torch();  // --yes is said already: run_command takes it
  return fail(ErrorCode::kConfig, "doctor --install-torch: unknown flag '" + words[0] + "'",
              "there is --yes");
}

}  // namespace

Result<void> run_doctor(cli::Words words) {
  if (!words.empty() && words[0] == "--gpus") return run_doctor_gpus(words.subspan(1));
  if (!words.empty() && words[0] == "--install-torch") return run_install_torch(words.subspan(1));
  std::string model, run_path = ".";
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (words[i] == "--help" || words[i] == "-h") {
      std::fputs(kDoctorHelp, stdout);
      return {};
    }
    std::string* target = words[i] == "--model"      ? &model
                          : words[i] == "--run-path" ? &run_path
                                                     : nullptr;
    if (target == nullptr) {
      return fail(ErrorCode::kConfig, "doctor: unknown flag '" + words[i] + "'",
                  "see troupe doctor --help");
    }
    if (i + 1 == words.size())
      return fail(ErrorCode::kConfig, "doctor: " + words[i] + " needs a value");
    *target = words[i + 1];
  }
  print_processor();
  print_memory_and_disk(run_path);
  print_libtorch();
  print_classes();
  print_gpus();
  if (!model.empty()) TROUPE_TRY(print_model(model));
  TROUPE_TRY(print_families());
  std::printf("\nlimits\n");
  for (const core::LimitRow& row : kLimits) {
    std::printf("  %-22s %12lu %s\n", row.name, row.value, row.unit);
  }
  return {};
}

}  // namespace troupe::app
