-- The health of any of the eight kinds for Argo CD: what its Ready condition says, once it is about the present spec.
-- `make generate` puts this text into argocd-cm.yaml, where Argo CD reads it.
local broken = {
  ChangeRefused = true,
  CopyFailed = true,
  CrashLoopBackOff = true,
  CreateRefused = true,
  DownloadFailed = true,
  ErrImageNeverPull = true,
  FailedCreate = true,
  ImageInspectError = true,
  ImagePullBackOff = true,
  InitContainerFailed = true,
  IntegrityCheckFailed = true,
  JobFailed = true,
  OOMKilled = true,
  PodFailed = true,
  ProgressDeadlineExceeded = true,
  QuotaExceeded = true,
}
local stopped = { ManuallyScaledToZero = true, Stopped = true, Suspended = true }

local status = obj.status or {}
if status.conditions == nil then
  return { status = "Progressing", message = "not answered yet" }
end
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the last change is not answered yet" }
end
local pods = ""
for _, condition in ipairs(status.conditions) do
  if condition.type == "PodsReady" then -- of an LLMInferenceService: the reason of its Ready is KServe's
    pods = condition.reason or ""
  end
end
for _, condition in ipairs(status.conditions) do
  if condition.type == "Ready" then
    local reason = condition.reason or ""
    local message = condition.message or reason
    if condition.status == "True" then
      return { status = "Healthy", message = message }
    end
    if stopped[reason] then
      return { status = "Suspended", message = message }
    end
    if broken[reason] or broken[pods] or string.sub(reason, 1, 7) == "Invalid" then
      return { status = "Degraded", message = message }
    end
    return { status = "Progressing", message = message }
  end
end
return { status = "Progressing", message = "not answered yet" }
