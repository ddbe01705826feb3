// Reports of folders in every state: empty, damaged, in progress, hostile, of several methods.
#include "apps/report/run_report.hpp"

#include "apps/report/page.hpp"
#include "apps/report/run_parts.hpp"
#include "made_run.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/store/run_folder.hpp"

#include <cmath>
#include <fstream>

namespace troupe::report {
namespace {

using namespace std::string_literals;

using nlohmann::ordered_json;
using test::MadeRun;
using test::rollout;

ordered_json report_of(const MadeRun& run) {
  return report_json({{run.path()}, 1000})["runs"][0];
}

std::vector<std::string> notes_of(const ordered_json& run) {
  return run["notes"].get<std::vector<std::string>>();
}

bool has(const std::vector<std::string>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(part) != note.npos; });
}

std::string eval_line(std::uint64_t id,
                      const std::string& mode,
                      const std::string& answer,
                      const ordered_json& score) {
  return ordered_json({{"step", 0},
                       {"mode", mode},
                       {"prompt_id", id},
                       {"prompt", "q" + std::to_string(id)},
                       {"label", "l"},
                       {"rewards", {score}},
                       {"responses", {answer}}})
             .dump() +
         "\n";
}

}  // namespace

TEST(RunReport, AnEmptyFolderSaysWhatIsNotThere) {
  const MadeRun run;
  const ordered_json out = report_of(run);
  EXPECT_EQ(notes_of(out),
            (std::vector<std::string>{
                "resolved_config.yaml is not there or cannot be read: no configuration",
                "metrics.jsonl is not there or cannot be read: no curves"}));
  EXPECT_EQ(out["name"], "run");
  EXPECT_EQ(out["running"], false);
  EXPECT_TRUE(out["metrics"].empty());
  EXPECT_TRUE(out["ledger"].is_null());
  EXPECT_FALSE(page(report_json({{run.path()}, 1000})).empty());
}

TEST(RunReport, MetricsBecomeCurves) {
  MadeRun run;
  run.put("metrics.jsonl",
          "{\"step\":0,\"time\":100.5,\"eval/greedy\":0.25}\n"
          "{\"step\":1,\"time\":101,\"reward/mean\":0.5,\"policy/loss\":\"nan\"}\n"
          "{\"step\":2,\"time\":103,\"reward/mean\":0.1234567890,\"policy/loss\":2}\n"
          "{\"no\":\"step\"}\n");
  const ordered_json out = report_of(run);
  EXPECT_EQ(out["last_step"], 2);
  EXPECT_EQ(out["rows"], 3);
  EXPECT_EQ(out["first_time_s"], 100.5);
  EXPECT_EQ(out["last_time_s"], 103.0);
  EXPECT_EQ(out["metrics"]["reward/mean"]["x"], ordered_json({1, 2}));
  EXPECT_EQ(out["metrics"]["reward/mean"]["y"], ordered_json({0.5, 0.123457}));
  EXPECT_EQ(out["metrics"]["policy/loss"]["not_finite"], 1);
  EXPECT_EQ(out["metrics"]["policy/loss"]["y"], ordered_json({2.0}));
  EXPECT_EQ(out["metrics"]["eval/greedy"]["group"], 2);
  EXPECT_EQ(out["clock"], ordered_json::parse(R"({"x":[0,1,2],"y":[0.0,0.5,2.5]})"));
  EXPECT_TRUE(has(notes_of(out), "rows without a step are left out: 1"));
}

// What every file of a run may have become.
TEST(RunReport, ADamagedFolderIsReadAsFarAsItGoes) {
  MadeRun run;
  run.put("resolved_config.yaml", "\0\xff: ["s);
  run.put("metrics.jsonl",
          "\xff\xfe\n{\"step\":-1}\n{\"step\":1,\"a/b\":1e999}\n"
          "{\"step\":1,\"a/b\":[1],\"c/d\":true}\n{\"step\":2,\"a/b\":3}\n{\"st");
  run.put("rollouts/step_000001.jsonl", "{}\nnull\n{\"slot\":-1,\"prompt\":[1],\"rewards\":3}\n");
  run.put("rollouts/step_x.jsonl", "{}\n");
  run.put("rollouts/step_000002.jsonl", "");
  std::filesystem::create_directories(run.path() / "rollouts" / "step_000003.jsonl");
  run.put("eval/step_000000.jsonl",
          "{\"prompt_id\":\"x\"}\n{\"prompt_id\":1,\"responses\":{}}\nx\n");
  run.put("experience/step_000001.log", "\xff\xff\xff\xff\0\0\0\0abc"s);
  run.put("ledger.log", "00000000 1 {}\nnothing\n");
  run.put("troupe.log", "\0\0\n\xff\xff no time\n2026-01-01T00:00:00.000+00:00 info fine\n"s);
  run.put("status.json",
          "{\"roles\":[1,{\"name\":5,\"idle_s\":[1]}],\"lost\":[[]],\"run\":3,\"nodes\":{}}");
  run.put("ckpt/step_000001/manifest.json", "[");
  run.put("nodes/a.log", "");
  const ordered_json out = report_of(run);
  const auto notes = notes_of(out);
  EXPECT_TRUE(has(notes, "metrics.jsonl: 2 lines")) << out["notes"];
  EXPECT_TRUE(has(notes, "metrics.jsonl: the last line has no end"));
  EXPECT_TRUE(has(notes, "rollouts/step_000001.jsonl: 1 line"));
  EXPECT_TRUE(has(notes, "eval/step_000000.jsonl: 1 line"));
  EXPECT_TRUE(has(notes, "experience/step_000001.log: the end"));
  EXPECT_TRUE(has(notes, "ledger.log: 2 damaged"));
  EXPECT_EQ(out["metrics"]["a/b"]["y"], ordered_json({3.0}));
  EXPECT_EQ(out["rollouts"]["samples"], 2);
  EXPECT_EQ(out["held_out"]["rows"].size(), 1u);
  const std::string text = page(report_json({{run.path()}, 1000}));
  EXPECT_EQ(text.find('\0'), text.npos);
}

TEST(RunReport, HostileTextIsDataAlone) {
  const std::string evil = "</script><script>alert(1)</script><!-- \"'`\0\u202E\u2028"s + "&lt;";
  MadeRun run("<img src=x onerror=alert(1)>");
  run.configure({"--actor.model_name_or_path", "<b>m</b>"});
  run.put("metrics.jsonl", ordered_json({{"step", 1}, {"<i>x/y</i>", 1}}).dump() + "\n");
  ordered_json row = rollout(0, 0, evil, 1, 1);
  row["prompt"] = evil;
  row["label"] = evil;
  row["rewards"] = {{evil, 1}};
  row["extra"] = {{evil, evil}};
  row["finish_reason"] = evil;
  run.put_rollouts(1, {row});
  run.put("eval/step_000000.jsonl", eval_line(1, evil, evil, 1));
  run.put("troupe.log", "2026-01-01T00:00:00.000+00:00 info <script>node lost</script>\n");
  run.put("nodes/<script>alert(2)<b>.log", evil);
  run.put("status.json",
          ordered_json({{"roles", {{{"name", evil}, {"node", evil}, {"idle_s", {{evil, 1}}}}}},
                        {"lost", {{{"name", evil}, {"last_lines", {evil}}}}}})
              .dump());
  const ordered_json data = report_json({{run.path()}, 1000});
  const ordered_json& out = data["runs"][0];
  EXPECT_EQ(out["rollouts"]["groups"][0]["samples"][0]["y"], evil);
  EXPECT_EQ(out["node_logs"][0]["name"], "<script>alert(2)<b>");
  EXPECT_EQ(out["company"]["roles"][0]["name"], evil);
  const std::string text = page(data);
  // The page of no run has the same markup.
  const std::string bare = page(ordered_json::object());
  EXPECT_EQ(std::count(text.begin(), text.end(), '<'), std::count(bare.begin(), bare.end(), '<'));
  EXPECT_EQ(std::count(text.begin(), text.end(), '>'), std::count(bare.begin(), bare.end(), '>'));
  EXPECT_EQ(std::count(text.begin(), text.end(), '&'), std::count(bare.begin(), bare.end(), '&'));
}

TEST(RunReport, ARunInProgressIsSeenAndLeftAlone) {
  MadeRun run;
  EXPECT_FALSE(is_running(run.path()));
  {
    const auto open = store::RunFolder::open(run.path());
    ASSERT_TRUE(open) << open.error().message;
    EXPECT_TRUE(is_running(run.path()));
    EXPECT_TRUE(report_of(run)["running"].get<bool>());
  }
  EXPECT_FALSE(is_running(run.path()));
}

TEST(RunReport, AnswersBeforeAndAfterAreThoseOfOneProblem) {
  MadeRun run;
  run.put("eval/step_000000.jsonl", eval_line(1, "greedy", "a0", 0) +
                                        eval_line(1, "sampled", "s0", 1) +
                                        eval_line(2, "greedy", "b0", nullptr));
  run.put("eval/step_000004.jsonl", eval_line(9, "greedy", "x", 1));
  run.put("eval/step_000010.jsonl",
          eval_line(2, "greedy", "b1", 1) + eval_line(1, "greedy", "a1", 1));
  const ordered_json held = report_of(run)["held_out"];
  EXPECT_EQ(held["before"], 0);
  EXPECT_EQ(held["after"], 10);
  ASSERT_EQ(held["rows"].size(), 3u);
  EXPECT_EQ(held["rows"][0]["before"]["y"][0], "a0");
  EXPECT_EQ(held["rows"][0]["after"]["y"][0], "a1");
  EXPECT_EQ(held["rows"][1]["mode"], "sampled");
  EXPECT_FALSE(held["rows"][1].contains("after"));
  EXPECT_TRUE(held["rows"][2]["before"]["r"][0].is_null()) << "a lost score is no 0";
}

TEST(RunReport, LedgerAndLogAreCounted) {
  MadeRun run;
  auto ledger = store::Ledger::open(run.path() / "ledger.log");
  ASSERT_TRUE(ledger);
  ASSERT_TRUE(
      ledger->append(1, {R"({"samples":4,"replaced":[5,6],"version_min":1,"version_max":1})",
                         R"({"samples":3,"replaced":[],"version_min":0,"version_max":2})"}));
  std::ofstream(run.path() / "ledger.log", std::ios::app) << "0123";
  run.put("troupe.log",
          "2026-01-01T00:00:00.000+00:00 info a joined from b\n"
          "2026-01-01T00:00:01.000+00:00 info node c was lost: killed\nno time here\n");
  const ordered_json out = report_of(run);
  EXPECT_EQ(out["ledger"]["groups"], 2);
  EXPECT_EQ(out["ledger"]["samples"], 7);
  EXPECT_EQ(out["ledger"]["replaced"], 2);
  EXPECT_EQ(out["ledger"]["damaged"], 0);
  EXPECT_EQ(out["ledger"]["spans"], ordered_json::parse("[[0,1],[2,1]]"));
  ASSERT_EQ(out["log"]["lines"].size(), 3u);
  EXPECT_EQ(out["log"]["lines"][1]["text"], "node c was lost: killed");
  EXPECT_EQ(out["log"]["lines"][1]["t"], "2026-01-01T00:00:01.000+00:00");
  EXPECT_TRUE(out["log"]["lines"][1].contains("fault"));
  EXPECT_FALSE(out["log"]["lines"][0].contains("fault"));
  EXPECT_EQ(out["log"]["lines"][2]["text"], "no time here");
}

// Of 10,000 lines the first and the last, and all 20 that tell of faults.
TEST(RunReport, ALongLogKeepsItsEndsAndItsFaults) {
  MadeRun run;
  std::string text;
  for (int i = 0; i < 10'000; ++i) {
    text += "2026-01-01T00:00:00.000+00:00 info line " + std::to_string(i) +
            (i % 500 == 250 ? " was lost\n" : "\n");
  }
  run.put("troupe.log", text);
  Notes notes;
  const ordered_json log = log_json(run.path(), notes);
  EXPECT_EQ(log["all"], 10'000);
  EXPECT_EQ(log["lines"].size(), 1'020u);
  EXPECT_EQ(log["left_out"], 8'980);
  EXPECT_EQ(log["lines"].front()["text"], "line 0");
  EXPECT_EQ(log["lines"].back()["text"], "line 9999");
  EXPECT_EQ(std::count_if(log["lines"].begin(), log["lines"].end(),
                          [](const auto& line) { return line.contains("fault"); }),
            20);
}

TEST(RunReport, ChangesOfRewardsAreMarkedAtTheirUpdates) {
  MadeRun run;
  const std::string head = "2026-01-01T00:00:00.000+00:00 info ";
  run.put("troupe.log", head + "reward set 0 from update 1 on: rule x 1\n" + head +
                            "reward set 1 from update 11 on: rule x 1 length x 0.1; formula sum\n" +
                            head + "reward set 2 from update 21 on: rule x 1\n" + head +
                            "reward set 2 from update 21 on: rule x 1\n" + head +
                            "reward set is no number\n" + head +
                            "going back from update 23 to update 20: /r/ckpt/step_000020, return 1 "
                            "of at most 3\n" +
                            head + "going back to the roots\n");
  Notes notes;
  const ordered_json marks = log_json(run.path(), notes)["marks"];
  ASSERT_EQ(marks.size(), 3u) << marks.dump() << ": the first set is no change, a set counts once";
  EXPECT_EQ(marks[0]["step"], 11);
  EXPECT_EQ(marks[0]["text"], "rewards from here on: rule x 1 length x 0.1; formula sum");
  EXPECT_EQ(marks[1]["step"], 21);
  EXPECT_EQ(marks[2]["step"], 21) << "the first that is done again";
  EXPECT_EQ(marks[2]["text"],
            "here again after update 23: /r/ckpt/step_000020, return 1 of at most 3");
}

TEST(RunReport, TimesOfRolesAreThoseOfTheStatus) {
  MadeRun run;
  run.put(
      "status.json",
      R"({"roles":[{"name":"policy/0","node":"head","busy_s":3,"wall_s":4,"idle_s":{"groups":1}}],
              "nodes":[{"name":"n","host":"h","cores":2}],"watched_s":4,"busy_together_s":1,
              "cast":[{"name":"policy/0","losses":2,"last_cause":"killed"}],
              "run":{"staleness_tokens":[10,20],"counts":{"x":1}}})");
  const ordered_json company = report_of(run)["company"];
  EXPECT_EQ(company["roles"][0]["busy_s"], 3);
  EXPECT_EQ(company["roles"][0]["idle"], ordered_json::parse(R"([["groups",1]])"));
  EXPECT_EQ(company["ages"], ordered_json::parse(R"([["0",10],["1",20]])"));
  EXPECT_EQ(company["parts"][0]["losses"], 2);
}

// A trace that has no end, as of a run in progress, with a line that is no span.
TEST(RunReport, SharesOfTheTraceAreAddedUpByRoleAndCause) {
  MadeRun run;
  run.put("trace.json",
          "[\n"
          R"({"args":{"name":"node/policy"},"name":"process_name","ph":"M","pid":6,"tid":0},)"
          "\n"
          R"({"args":{"name":"policy/0"},"name":"thread_name","ph":"M","pid":6,"tid":7},)"
          "\n"
          R"({"cat":"idle","dur":2000000,"name":"waiting","ph":"X","pid":6,"tid":7,"ts":1},)"
          "\n"
          R"({"cat":"busy","dur":500000,"name":"train","ph":"X","pid":6,"tid":7,"ts":2},)"
          "\n"
          R"({"cat":"busy","dur":250000,"name":"train","ph":"X","pid":6,"tid":7,"ts":3},)"
          "\n"
          R"({"cat":"busy","dur":1,"name":"train","ph":"X","pid":6,"tid":99,"ts":3},)"
          "\n{\"cat\":\"bu");
  const ordered_json out = report_of(run);
  EXPECT_EQ(out["trace"], ordered_json::parse(R"([{"name":"policy/0","node":"node/policy",
      "seconds":2.75,"spans":[["idle","waiting",2.0],["busy","train",0.75]]}])"));
  EXPECT_TRUE(has(notes_of(out), "trace.json: lines that are no spans are left out: 1"));
}

// Whatever bytes the files of a run have, a page comes out, and it has the markup of the empty one.
TEST(RunReport, NoDamageStopsIt) {
  MadeRun run;
  run.configure({});
  run.put("metrics.jsonl",
          "{\"step\":0,\"time\":1,\"eval/greedy\":0.5}\n"
          "{\"step\":1,\"time\":2,\"reward/mean\":0.5,\"kl/ref\":\"nan\"}\n");
  run.put_rollouts(1, {rollout(0, 0, "ab", 2, 1), rollout(0, 1, "c", 1, 0)});
  run.log_events(1, {actors::data::GroupReferenced{{0, 0, 0}, {{-1, -1.5f}, {-1}}}});
  run.put("eval/step_000000.jsonl", eval_line(1, "greedy", "a0", 0));
  run.put("eval/step_000001.jsonl", eval_line(1, "greedy", "a1", 1));
  run.put("troupe.log", "2026-01-01T00:00:00.000+00:00 info node c was lost: killed\n");
  run.put("status.json", R"({"roles":[{"name":"p","busy_s":3,"wall_s":4,"idle_s":{"g":1}}],
                            "lost":[{"name":"n","last_lines":["x"]}],"nodes":[{"name":"n"}],
                            "run":{"staleness_tokens":[10,20]}})");
  run.put("nodes/n.log", "line\n");
  run.put("ckpt/step_000001/manifest.json", R"({"state":{"arithmetic":"f32"}})");
  auto ledger = store::Ledger::open(run.path() / "ledger.log");
  ASSERT_TRUE(ledger);
  ASSERT_TRUE(ledger->append(1, {R"({"samples":4,"replaced":[5,6]})"}));
  std::map<std::filesystem::path, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.path())) {
    if (entry.is_regular_file()) files[entry.path()] = test::read_file(entry.path());
  }
  ASSERT_GE(files.size(), 10u);
  const std::string bare = page(ordered_json::object());
  core::Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    for (const auto& [path, text] : files) {
      std::string damaged = text;
      const auto kind = rng.next_below(4);
      const auto at = text.empty() ? 0 : rng.next_below(text.size());
      if (kind == 0) damaged.resize(at);
      if (kind == 1 && !text.empty()) damaged[at] = static_cast<char>(rng.next_below(256));
      if (kind == 2) damaged.insert(at, text.substr(0, rng.next_below(40)));
      test::put_file(path, damaged);
    }
    const std::string text = page(report_json({{run.path()}, 1000}));
    ASSERT_EQ(std::count(text.begin(), text.end(), '<'), std::count(bare.begin(), bare.end(), '<'));
  }
}

TEST(RunReport, RunsOfSeveralMethodsStandTogether) {
  MadeRun grpo("grpo"), sft("sft");
  grpo.configure({"--method", "ppo"});
  grpo.put("metrics.jsonl", "{\"step\":1,\"reward/mean\":1}\n");
  grpo.put_rollouts(1, {rollout(0, 0, "a", 1, 1), rollout(0, 1, "b", 1, 0)});
  sft.configure({"--method", "sft"});
  sft.put("metrics.jsonl", "{\"step\":1,\"eval/loss\":2,\"train/epoch\":1}\n");
  const ordered_json data = report_json({{grpo.path(), sft.path()}, 1000});
  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][0]["method"], "ppo");
  EXPECT_EQ(data["runs"][1]["method"], "sft");
  EXPECT_EQ(data["runs"][0]["rollouts"]["samples"], 2);
  EXPECT_EQ(data["runs"][1]["rollouts"]["samples"], 0);
  EXPECT_EQ(data["groups"][3], "Of supervised methods");
  EXPECT_EQ(data["runs"][1]["metrics"]["train/epoch"]["group"], 3);
}

}  // namespace troupe::report
