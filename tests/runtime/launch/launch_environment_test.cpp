#include "runtime/launch/launch_environment.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace runtime {
namespace {

const EnvironmentMap torchrun{{"RANK", "3"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "host0"},
                              {"MASTER_PORT", "29501"}};
const EnvironmentMap slurm{{"SLURM_PROCID", "5"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NTASKS_PER_NODE", "4"},
                           {"SLURM_JOB_ID", "77"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_JOB_NODELIST", "gpu[07-08],login"}};
const EnvironmentMap open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"PMIX_NAMESPACE", "prterun-host-42@1"}};
const EnvironmentMap hydra{{"PMI_RANK", "0"},        {"PMI_SIZE", "4"},    {"MPI_LOCALRANKID", "0"},
                           {"MPI_LOCALNRANKS", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1234"}};

EnvironmentMap merge(EnvironmentMap base, const EnvironmentMap& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

EnvironmentMap without(EnvironmentMap base, const std::string& name) {
  base.erase(name);
  return base;
}

RankIdentity identity_of(const EnvironmentMap& environment, Launcher launcher = Launcher::automatic) {
  const auto result = read_launch_environment(environment, launcher);
  EXPECT_TRUE(result.ok()) << result.diagnostics.render();
  if (!result.ok() || !*result) return {};
  return **result;
}

std::string errors_of(const EnvironmentMap& environment, Launcher launcher = Launcher::automatic) {
  const auto result = read_launch_environment(environment, launcher);
  EXPECT_FALSE(result.ok());
  return result.diagnostics.render();
}

TEST(LaunchEnvironment, NoVariablesMeanThatDsrunStartsTheRanks) {
  const auto result = read_launch_environment({{"HOME", "/root"}, {"SLURM_JOB_ID", "77"}});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->has_value());
}

TEST(LaunchEnvironment, TorchrunTellsRankSizeAndRendezvous) {
  const RankIdentity identity = identity_of(torchrun);
  EXPECT_EQ(identity, (RankIdentity{Launcher::torchrun, 3, 8, 1, 2, "host0", 29501, false, 0}));
  const RankIdentity agent = identity_of(
      merge(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  EXPECT_TRUE(agent.store_is_hosted);
  EXPECT_EQ(agent.restart, 2);
}

TEST(LaunchEnvironment, SlurmMeetsOnTheFirstHostAtAPortThatAllTasksCompute) {
  const RankIdentity identity = identity_of(slurm);
  EXPECT_EQ(identity.rank, 5);
  EXPECT_EQ(identity.world_size, 8);
  EXPECT_EQ(identity.local_world_size, 4);
  EXPECT_EQ(identity.rendezvous_host, "gpu07");
  EXPECT_GE(identity.rendezvous_port, 15000);
  EXPECT_EQ(identity_of(merge(slurm, {{"SLURM_PROCID", "0"}})).rendezvous_port, identity.rendezvous_port);
  EXPECT_NE(identity_of(merge(slurm, {{"SLURM_STEP_ID", "1"}})).rendezvous_port, identity.rendezvous_port);
}

TEST(LaunchEnvironment, ASlurmNodeListThatIsNoneIsRefusedUnlessTheAddressIsGiven) {
  for (const char* list : {"", "gpu[07-08", "gpu]07", "gpu[]", "gpu[7-]", "gpu[a]", "gpu1,,gpu2", ",gpu1",
                           "gpu1,", "gpu 1", "gpu[1,2],"}) {
    const EnvironmentMap environment = merge(slurm, {{"SLURM_JOB_NODELIST", list}});
    const std::string seen = "SLURM_JOB_NODELIST=" + std::string(list) + " is no list of hosts";
    EXPECT_NE(errors_of(environment).find(seen), std::string::npos) << list;
    EXPECT_EQ(identity_of(merge(environment, {{"MASTER_ADDR", "h9"}})).rendezvous_host, "h9");
  }
  for (const char* list : {"gpu7", "gpu[7]", "gpu[07-08,11],login-1.site", "rack[0-3]n[1-8],b"})
    EXPECT_EQ(identity_of(merge(slurm, {{"SLURM_JOB_NODELIST", list}})).rendezvous_host, first_host(list));
}

TEST(LaunchEnvironment, OpenMpiOnOneHostNeedsNoAddressAndOnSeveralAsksForOne) {
  const RankIdentity identity = identity_of(open_mpi);
  EXPECT_EQ(identity.rank, 1);
  EXPECT_EQ(identity.rendezvous_host, "127.0.0.1");
  const EnvironmentMap two_hosts = merge(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_NE(errors_of(two_hosts).find("MASTER_ADDR"), std::string::npos);
  EXPECT_EQ(identity_of(merge(two_hosts, {{"MASTER_ADDR", "h9"}})).rendezvous_host, "h9");
}

TEST(LaunchEnvironment, HydraTakesTheAddressFromTheUser) {
  EXPECT_EQ(identity_of(hydra), (RankIdentity{Launcher::hydra, 0, 4, 0, 2, "h", 1234, false, 0}));
  EXPECT_NE(errors_of(without(hydra, "MASTER_PORT")).find("MASTER_PORT is not set"), std::string::npos);
}

TEST(LaunchEnvironment, APartialSetIsRefusedWithWhatLacksAndWhatWasSeen) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string errors = errors_of(without(torchrun, name));
    EXPECT_NE(errors.find(std::string(name) + " is not set (seen: "), std::string::npos) << errors;
  }
  EXPECT_NE(errors_of({{"RANK", "0"}}).find("WORLD_SIZE, MASTER_ADDR, MASTER_PORT are not set"),
            std::string::npos);
  EXPECT_NE(errors_of(without(slurm, "SLURM_NTASKS")).find("SLURM_NTASKS"), std::string::npos);
  EXPECT_NE(errors_of(without(open_mpi, "OMPI_COMM_WORLD_SIZE")).find("OMPI_COMM_WORLD_SIZE"),
            std::string::npos);
}

TEST(LaunchEnvironment, TorchrunInsideSlurmCountsSinceSlurmStartedIt) {
  EXPECT_EQ(identity_of(merge(slurm, torchrun)).launcher, Launcher::torchrun);
}

TEST(LaunchEnvironment, SlurmAndMpiThatDisagreeAreRefusedAndTheFlagDecides) {
  const EnvironmentMap both = merge(slurm, open_mpi);
  EXPECT_NE(errors_of(both).find("two launchers disagree"), std::string::npos);
  EXPECT_EQ(identity_of(both, Launcher::open_mpi).world_size, 2);
  EXPECT_EQ(identity_of(both, Launcher::slurm).world_size, 8);
  const EnvironmentMap agree = merge(slurm, {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_EQ(identity_of(agree).launcher, Launcher::slurm);
}

TEST(LaunchEnvironment, LocalIgnoresEveryVariable) {
  const auto result = read_launch_environment(torchrun, Launcher::local);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->has_value());
}

TEST(LaunchEnvironment, NumbersThatAreNoneOrOutOfRangeAreRefusedByName) {
  EXPECT_NE(errors_of(merge(torchrun, {{"RANK", "8"}})).find("RANK=8"), std::string::npos);
  EXPECT_NE(errors_of(merge(torchrun, {{"RANK", "x"}})).find("RANK=x"), std::string::npos);
  EXPECT_NE(errors_of(merge(torchrun, {{"WORLD_SIZE", "-1"}})).find("WORLD_SIZE=-1"), std::string::npos);
  EXPECT_NE(errors_of(merge(torchrun, {{"MASTER_PORT", "70000"}})).find("MASTER_PORT=70000"),
            std::string::npos);
}

TEST(LaunchEnvironment, TheFirstHostOfASlurmList) {
  const std::vector<std::pair<std::string, std::string>> table{{"", ""},
                                                               {"one", "one"},
                                                               {"a,b", "a"},
                                                               {"n[01-04,7],x", "n01"},
                                                               {"n[3]", "n3"},
                                                               {"x,n[01-04]", "x"},
                                                               {"r[1-2]-ib,z", "r1-ib"},
                                                               {"n[12,14-16]", "n12"},
                                                               {"broken[1", "broken"},
                                                               {"rack[0-3]n[1-8],b", "rack0n1"}};
  for (const auto& [list, correct] : table) EXPECT_EQ(first_host(list), correct) << list;
}

}  // namespace
}  // namespace runtime
