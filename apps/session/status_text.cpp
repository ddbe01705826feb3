#include "apps/session/status_text.hpp"

#include "apps/session/reward_words.hpp"
#include "runtime/core/ids.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <utility>

namespace troupe::session {
namespace {

using nlohmann::json;

std::string place_of(const StatusFacts& facts, const std::string& role) {
  for (const actors::company::PlacedRole& part : facts.company.roles) {
    if (part.name == role) return part.node;
  }
  const auto found = facts.company.brought.find(role);
  return found == facts.company.brought.end() ? "head" : found->second;
}

json role_json(const StatusFacts& facts, const wire::RoleReport& report) {
  const auto object = [](const wire::Amounts& amounts) {
    return std::map<std::string, double>(amounts.begin(), amounts.end());
  };
  return {{"name", report.name},
          {"node", place_of(facts, report.name)},
          {"state", report.state},
          {"actor", report.actor},
          {"epoch", report.epoch},
          {"inbox", report.inbox},
          {"pending", report.pending},
          {"frames_in", report.frames_in},
          {"frames_out", report.frames_out},
          {"busy_s", report.busy_s},
          {"paused_s", report.paused_s},
          {"idle_s", object(report.idle_s)},
          {"wall_s", report.wall_s},
          {"waits_for", report.waits_for},
          {"age_s", report.age_s},
          {"amounts", object(report.amounts)}};
}

double seconds_between(core::TimePoint from, core::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

// Whether the role was taken down for its errors, or is being.
bool is_sick(const actors::company::PlacedRole& part) {
  return part.sick || (part.state == actors::company::RoleState::kStopping && !part.moves);
}

// 0 for a role that is up, or that may start at once.
double starts_in_s(const actors::company::PlacedRole& part, core::TimePoint now) {
  const bool waits = part.state == actors::company::RoleState::kWanted && part.not_before > now;
  return waits ? seconds_between(now, part.not_before) : 0.0;
}

// A wanted role, as the company places it.
json part_json(const actors::company::PlacedRole& part, core::TimePoint now) {
  const char* const states[] = {"wanted", "starting", "up", "stopping"};
  return {{"name", part.name},
          {"kind", part.kind},
          {"node", part.node},
          {"state", states[static_cast<int>(part.state)]},
          {"epoch", part.epoch},
          {"losses", part.losses.size()},
          {"sick", is_sick(part)},
          {"starts_in_s", starts_in_s(part, now)},
          {"last_cause", part.last_cause}};
}

json lost_json(const actors::company::LostNode& node, core::TimePoint now) {
  return {{"name", node.name},
          {"host", node.host},
          {"cause", node.cause},
          {"ago_s", seconds_between(node.when, now)},
          {"last_lines", node.last_lines}};
}

std::string label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void print(std::string& to, const char* format, auto... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  to += line;
}

void print_roles(std::string& page, const json& roles) {
  print(page, "%-18s %-16s %5s %5s %-12s %9s %9s %6s  %s\n", "role", "node", "actor", "epoch",
        "state", "in", "out", "busy", "waits for / idle most for");
  for (const json& role : roles) {
    const RoleShares shares = shares_of(role);
    std::string why = role.value("waits_for", "");
    if (shares.idle > 0.01) {
      why += (why.empty() ? "" : "; ") + shares.idle_cause;
      print(why, " %.0f%%", 100 * shares.idle);
    }
    print(page, "%-18s %-16s %5llu %5llu %-12s %9llu %9llu %5.0f%%  %s\n",
          role.value("name", "").c_str(), role.value("node", "").c_str(),
          static_cast<unsigned long long>(role.value("actor", 0ull)),
          static_cast<unsigned long long>(core::start_of(role.value("epoch", 0ull))),
          role.value("state", "").c_str(),
          static_cast<unsigned long long>(role.value("frames_in", 0ull)),
          static_cast<unsigned long long>(role.value("frames_out", 0ull)), 100 * shares.busy,
          why.c_str());
  }
}

// The roles that are not up, and why.
void print_absent(std::string& page, const json& parts) {
  bool any = false;
  for (const json& part : parts) {
    const std::string state = part.value("state", ""), cause = part.value("last_cause", "");
    if (state == "up") continue;
    if (!std::exchange(any, true)) page += "\n";
    page += part.value("name", "");
    if (const double wait = part.value("starts_in_s", 0.0); wait > 0) {
      print(page, " is started again in %.1f s", wait);
    } else {
      page += state == "wanted" ? " waits for a node" : state == "starting" ? " starts" : " stops";
    }
    if (part.value("sick", false)) page += "; it was sick";
    page += (cause.empty() ? "" : ": " + cause) + "\n";
  }
}

void print_engines(std::string& page, const json& roles) {
  bool any = false;
  for (const json& role : roles) {
    const json amounts = role.value("amounts", json::object());
    if (!amounts.contains("kv_blocks")) continue;
    if (!std::exchange(any, true)) {
      print(page, "\n%-18s %8s %8s %10s %6s %9s\n", "engine", "running", "waiting", "tokens/s",
            "KV", "figures");
    }
    const double blocks = std::max(amounts.value("kv_blocks", 0.0), 1.0);
    print(page, "%-18s %8.0f %8.0f %10.1f %5.0f%% %5.1f s old\n", role.value("name", "").c_str(),
          amounts.value("running", 0.0), amounts.value("waiting", 0.0),
          amounts.value("tokens_per_s", 0.0), 100 * amounts.value("kv_blocks_used", 0.0) / blocks,
          role.value("age_s", 0.0));
  }
}

// What plain Python rewards cost an update, and which servers are away.
void print_costs(std::string& page, const json& roles, std::uint64_t groups) {
  for (const json& role : roles) {
    const json amounts = role.value("amounts", json::object());
    const CallCosts costs{amounts.value("workers", 0.0), amounts.value("call_s", 0.0),
                          amounts.value("timed_calls", 0.0), amounts.value("together", 0.0)};
    const std::string words = call_arithmetic(costs, groups);
    const std::string servers =
        servers_words(amounts.value("servers", 0.0), amounts.value("servers_away", 0.0));
    for (const std::string& line : {words, servers})
      if (!line.empty()) page += "\n" + role.value("name", "") + ": " + line + "\n";
  }
}

void print_lost(std::string& page, const json& lost) {
  for (const json& node : lost) {
    print(page, "\nlost %.1f s ago: %s (%s): ", node.value("ago_s", 0.0),
          node.value("name", "").c_str(), node.value("host", "").c_str());
    page += node.value("cause", "") + "\n";
    for (const json& line : node.value("last_lines", json::array()))
      page += "  | " + line.get<std::string>() + "\n";
  }
}

void print_counts(std::string& page, const json& run) {
  for (const auto& [cause, count] : run["counts"].items()) {
    print(page, "%s: %llu\n", cause.c_str(),
          static_cast<unsigned long long>(count.get<std::uint64_t>()));
  }
}

// True for a supervised run, which samples and scores nothing.
bool only_steps(const json& run) {
  const auto none = [&run](const char* name) { return run[name].empty(); };
  return none("generators") && none("rewards") && none("staleness_tokens");
}

void print_run(std::string& page, const json& run) {
  if (!run.is_object()) return;
  if (only_steps(run)) {
    print(page, "\nsteps done %llu\n",
          static_cast<unsigned long long>(run.value("updates_done", 0ull)));
    return print_counts(page, run);
  }
  print(page, "\nupdates done %llu, tickets out for %llu, waiting %llu; weights version %llu\n",
        static_cast<unsigned long long>(run.value("updates_done", 0ull)),
        static_cast<unsigned long long>(run.value("updates_issued", 0ull)),
        static_cast<unsigned long long>(run.value("tickets_waiting", 0ull)),
        static_cast<unsigned long long>(run.value("version", 0ull)));
  page += "age of trained tokens in updates:";
  std::size_t age = 0;
  for (const json& tokens : run["staleness_tokens"]) {
    print(page, "  %zu: %llu", age++, static_cast<unsigned long long>(tokens.get<std::uint64_t>()));
  }
  print(page, "\nreward set %llu:", static_cast<unsigned long long>(run.value("reward_set", 0ull)));
  for (const json& member : run["rewards"]) {
    print(page, "  %s x %g (%s)", member.value("name", "").c_str(), member.value("weight", 0.0),
          member.value("peer", "").c_str());
  }
  if (run.contains("formula")) print(page, "  formula: %s", run.value("formula", "").c_str());
  page += "\n";
  print_counts(page, run);
}

}  // namespace

RoleShares shares_of(const json& role) {
  RoleShares shares;
  const double wall = std::max(role.value("wall_s", 0.0), 1e-9);
  shares.busy = role.value("busy_s", 0.0) / wall;
  for (const auto& [cause, seconds] : role["idle_s"].items()) {
    if (seconds.get<double>() / wall <= shares.idle) continue;
    shares.idle = seconds.get<double>() / wall;
    shares.idle_cause = cause;
  }
  return shares;
}

std::string status_json(const StatusFacts& facts) {
  json nodes = json::array();
  for (const auto& node : facts.company.nodes) {
    nodes.push_back({{"name", node.join.name},
                     {"host", node.join.host},
                     {"pid", node.join.pid},
                     {"cores", node.join.cores},
                     {"offers", node.join.roles},
                     {"health", node.health},
                     {"silent_s", node.silent_s},
                     {"memory_bytes", node.memory},
                     {"age_s", node.age_s}});
  }
  json roles = json::array();
  for (const auto& [name, report] : facts.roles)
    roles.push_back(role_json(facts, report));
  json parts = json::array();
  for (const actors::company::PlacedRole& part : facts.company.roles)
    parts.push_back(part_json(part, facts.company.now));
  json lost = json::array();
  for (const actors::company::LostNode& node : facts.company.lost)
    lost.push_back(lost_json(node, facts.company.now));
  json object = {{"nodes", std::move(nodes)},
                 {"cast", std::move(parts)},
                 {"roles", std::move(roles)},
                 {"lost", std::move(lost)},
                 {"transport",
                  {{"frames", facts.frames},
                   {"bytes", facts.bytes},
                   {"refused", facts.refused},
                   {"stray", facts.stray}}},
                 {"groups_an_update", facts.groups},
                 {"watched_s", facts.watched_s},
                 {"busy_together_s", facts.busy_together_s}};
  if (!facts.controller.empty()) {
    object["run"] = json::parse(facts.controller, nullptr, false);
    if (object["run"].is_object()) object["run"].erase("weights");  // its key is for nodes alone
  }
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string status_metrics(const StatusFacts& facts) {
  std::ostringstream out;
  const auto of_role = [&out](const char* metric, const std::string& role, const std::string& more,
                              auto value) {
    out << metric << "{role=\"" << label(role) << "\"" << more << "} " << value << "\n";
  };
  out << "# TYPE troupe_role_seconds counter\n";
  for (const auto& [name, report] : facts.roles) {
    of_role("troupe_role_seconds", name, ",state=\"busy\",cause=\"\"", report.busy_s);
    of_role("troupe_role_seconds", name, ",state=\"paused\",cause=\"\"", report.paused_s);
    for (const auto& [cause, seconds] : report.idle_s)
      of_role("troupe_role_seconds", name, ",state=\"idle\",cause=\"" + label(cause) + "\"",
              seconds);
  }
  out << "# TYPE troupe_role_wall_seconds counter\n";
  for (const auto& [name, report] : facts.roles)
    of_role("troupe_role_wall_seconds", name, "", report.wall_s);
  out << "# TYPE troupe_role_frames_total counter\n";
  for (const auto& [name, report] : facts.roles) {
    of_role("troupe_role_frames_total", name, ",way=\"in\"", report.frames_in);
    of_role("troupe_role_frames_total", name, ",way=\"out\"", report.frames_out);
  }
  out << "# TYPE troupe_role_queue gauge\n";
  for (const auto& [name, report] : facts.roles) {
    of_role("troupe_role_queue", name, ",what=\"inbox\"", report.inbox);
    of_role("troupe_role_queue", name, ",what=\"pending\"", report.pending);
  }
  out << "# TYPE troupe_role_amount gauge\n";
  for (const auto& [name, report] : facts.roles) {
    for (const auto& [what, value] : report.amounts)
      of_role("troupe_role_amount", name, ",what=\"" + label(what) + "\"", value);
  }
  out << "# TYPE troupe_role_figures_age_seconds gauge\n";
  for (const auto& [name, report] : facts.roles)
    of_role("troupe_role_figures_age_seconds", name, "", report.age_s);
  out << "# TYPE troupe_role_sick gauge\n";
  for (const actors::company::PlacedRole& part : facts.company.roles)
    of_role("troupe_role_sick", part.name, "", is_sick(part));
  out << "# TYPE troupe_role_starts_in_seconds gauge\n";
  for (const actors::company::PlacedRole& part : facts.company.roles)
    of_role("troupe_role_starts_in_seconds", part.name, "", starts_in_s(part, facts.company.now));
  out << "# TYPE troupe_node_memory_bytes gauge\n";
  for (const auto& node : facts.company.nodes) {
    out << "troupe_node_memory_bytes{node=\"" << label(node.join.name) << "\"} " << node.memory
        << "\n";
  }
  out << "# TYPE troupe_node_silent_seconds gauge\n";
  for (const auto& node : facts.company.nodes) {
    out << "troupe_node_silent_seconds{node=\"" << label(node.join.name) << "\"} " << node.silent_s
        << "\n";
  }
  out << "# TYPE troupe_frames_total counter\ntroupe_frames_total " << facts.frames
      << "\n# TYPE troupe_refused_total counter\ntroupe_refused_total " << facts.refused << "\n";
  return out.str();
}

std::string status_page(const std::string& text) {
  const json status = json::parse(text, nullptr, false);
  std::string page;
  if (!status.is_object()) return "the status cannot be read\n";
  print(page, "%-22s %-20s %8s %5s %9s %-8s %7s  %s\n", "node", "host", "pid", "cores", "memory",
        "health", "silent", "offers");
  for (const json& node : status["nodes"]) {
    std::string offers;
    for (const json& kind : node["offers"]) {
      offers += (offers.empty() ? "" : ",") + kind.get<std::string>();
    }
    if (offers.empty()) continue;  // joined only to ask something, as `troupe status` does
    const double mib = static_cast<double>(node.value("memory_bytes", 0ull)) / (1 << 20);
    print(page, "%-22s %-20s %8u %5u %5.0f MiB %-8s %5.1f s  %s\n", node.value("name", "").c_str(),
          node.value("host", "").c_str(), node.value("pid", 0u), node.value("cores", 0u), mib,
          node.value("health", "").c_str(), node.value("silent_s", 0.0), offers.c_str());
  }
  page += "\n";
  print_roles(page, status["roles"]);
  print_engines(page, status["roles"]);
  print_costs(page, status["roles"], status.value("groups_an_update", std::uint64_t{0}));
  if (status.contains("cast")) print_absent(page, status["cast"]);
  if (status.contains("lost")) print_lost(page, status["lost"]);
  if (status.contains("run")) print_run(page, status["run"]);
  return page;
}

}  // namespace troupe::session
