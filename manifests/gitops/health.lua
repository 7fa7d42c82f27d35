-- The health of any of the eight kinds for Argo CD: what its Ready condition says, once it is about the present spec.
-- Argo CD opens neither string, math nor io for health checks, so nothing of them is used here.
-- `make generate` writes the tables, and puts this text into argocd-cm.yaml, where Argo CD reads it.
local broken = {
  ArgumentNotRenderable = true,
  BackendRuntimeInvalid = true,
  ChangeRefused = true,
  ClaimLost = true,
  CombineBaseError = true,
  ContainerCannotRun = true,
  CopyFailed = true,
  CrashLoopBackOff = true,
  CreateContainerError = true,
  CreateRefused = true,
  DeploymentPaused = true,
  DownloadFailed = true,
  ErrImageNeverPull = true,
  FailedCreate = true,
  FormatNotServable = true,
  GlobalConfigInvalid = true,
  ImageInspectError = true,
  ImagePullBackOff = true,
  InitContainerFailed = true,
  IntegrityCheckFailed = true,
  InvalidFileSet = true,
  InvalidGPUSharing = true,
  InvalidImageName = true,
  InvalidSettings = true,
  InvalidSource = true,
  InvalidSpec = true,
  JobFailed = true,
  KindNotInstalled = true,
  LeaderWorkerSetRequired = true,
  ModelInvalid = true,
  ModelNotLoadable = true,
  NameConflict = true,
  NoModelNamed = true,
  OOMKilled = true,
  OperatorConfigInvalid = true,
  ParallelismContradicted = true,
  PodFailed = true,
  PresetNotFound = true,
  ProgressDeadlineExceeded = true,
  QuotaExceeded = true,
  ReconcileScalingError = true,
  ReplicaSetCreateError = true,
  ServiceConflict = true,
  SignatureValidationFailed = true,
  SourceNotAllowed = true,
  SourceNotServable = true,
  StartError = true,
  TemplateConflict = true,
  TensorParallelSize = true,
}
local stopped = {
  ManuallyScaledToZero = true,
  Stopped = true,
  Suspended = true,
}

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "is being deleted" }
end
local status = obj.status or {}
if status.conditions == nil then
  return { status = "Progressing", message = "not answered yet" }
end
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the last change is not answered yet" }
end
local found = {}
for _, condition in ipairs(status.conditions) do
  found[condition.type] = condition
end
if found.Stopped ~= nil then
  return { status = "Suspended", message = found.Stopped.message or found.Stopped.reason }
end
local ready = found.Ready
if ready == nil then
  return { status = "Progressing", message = "not answered yet" }
end
local reason = ready.reason or ""
local message = ready.message or reason
if ready.status == "True" then
  if (obj.spec or {}).replicas == 0 then
    return { status = "Suspended", message = message }
  end
  return { status = "Healthy", message = message }
end
if stopped[reason] then
  return { status = "Suspended", message = message }
end
-- The reason of an LLMInferenceService's Ready is KServe's; these two have the causes.
local pods, children = found.PodsReady or {}, found.ChildrenCreated or {}
if found.Stalled ~= nil or broken[reason] or broken[pods.reason or ""] or broken[children.reason or ""] then
  return { status = "Degraded", message = message }
end
return { status = "Progressing", message = message }
