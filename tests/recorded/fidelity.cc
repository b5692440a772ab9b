#include "fidelity.h"

#include <fmt/format.h>

namespace sextant::recorded {
namespace {

constexpr int kRefused = 400;

double Percent(size_t part, size_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

CaseCount CountOf(const CaseFile& file) {
  CaseCount count{.name = file.name};
  for (const Step& step : file.steps) {
    ++count.steps;
    if (step.method == "GET" || step.method == "HEAD" || step.method == "READ") ++count.reads;
    if (step.status >= kRefused) ++count.refused;
  }
  return count;
}

CaseCount Sum(std::span<const CaseCount> counts) {
  CaseCount all{.name = "all"};
  for (const CaseCount& one : counts) {
    all.steps += one.steps;
    all.reads += one.reads;
    all.refused += one.refused;
    all.equal += one.equal;
  }
  return all;
}

std::string FidelityPage(std::span<const CaseCount> counts,
                         const std::map<std::string, std::string>& differences) {
  const CaseCount all = Sum(counts);
  std::string page = fmt::format(
      "# Fidelity\n\nWritten by `recorded_test` (`SEXTANT_FIDELITY=write`); every test run checks "
      "that it is true.\n\nThe real kube-apiserver 1.36.3 answered {} recorded requests "
      "([recorded-cases.md](recorded-cases.md)); Sextant answers {} of them alike ({:.1f} %). "
      "{:.0f} "
      "% are reads, {} are refusals.\n\n| case file | steps | reads | refused | equal |\n"
      "| --- | ---: | ---: | ---: | ---: |\n",
      all.steps, all.equal, Percent(all.equal, all.steps), Percent(all.reads, all.steps),
      all.refused);
  for (const CaseCount& one : counts) {
    page += fmt::format("| {} | {} | {} | {} | {} |\n", one.name, one.steps, one.reads, one.refused,
                        one.equal);
  }
  page += fmt::format("| **all** | {} | {} | {} | {} |\n", all.steps, all.reads, all.refused,
                      all.equal);
  page += "\n## What differs, and why\n\n| case: step | why |\n| --- | --- |\n";
  for (const auto& [step, why] : differences) page += fmt::format("| {} | {} |\n", step, why);
  return page;
}

}  // namespace sextant::recorded
