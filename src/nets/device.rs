//! Where tensors live: the CPU (burn flex) or a GPU (burn wgpu), chosen at run
//! time.
//!
//! Adapters are listed and opened on an explicit graphics API, Vulkan (on macOS
//! Metal). burn's automatic choice would fall back to OpenGL, on which compute
//! shaders hang.

use std::fmt;
use std::str::FromStr;

use burn::tensor::{Device, StreamId};

/// What a person asked for with `--device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceRequest {
    /// Whatever is fastest for the network: for those who can measure that.
    Auto,
    /// This one.
    Fixed(DeviceId),
}

/// The short name of a device, as `tanren devices` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceId {
    /// `cpu`.
    Cpu,
    /// `gpu:N`, the adapter with this number; `gpu` is the first.
    Gpu(usize),
}

impl FromStr for DeviceRequest {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let fixed = match text {
            "auto" => return Ok(DeviceRequest::Auto),
            "cpu" => DeviceId::Cpu,
            "gpu" => DeviceId::Gpu(0),
            _ => text
                .strip_prefix("gpu:")
                .and_then(|number| number.parse().ok())
                .map(DeviceId::Gpu)
                .ok_or_else(|| DeviceError::Unknown(text.to_string()))?,
        };
        Ok(DeviceRequest::Fixed(fixed))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Cpu => f.write_str("cpu"),
            DeviceId::Gpu(number) => write!(f, "gpu:{number}"),
        }
    }
}

/// Why a device could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// No device has such a name.
    #[error("unknown device {0:?}: accepted are auto, cpu, gpu and gpu:N (see `tanren devices`)")]
    Unknown(String),
    /// There is no GPU to open.
    #[error(
        "no GPU adapter found; use --device cpu, or install a Vulkan driver (`tanren devices` lists \
         what is found)"
    )]
    NoAdapter,
    /// There are GPUs, but not this one.
    #[error("there is no gpu:{asked}: this machine has {found} (see `tanren devices`)")]
    NoSuchAdapter {
        /// The number asked for.
        asked: usize,
        /// How many there are, in words.
        found: String,
    },
    /// The adapter is there but does not work.
    #[error("cannot open {adapter}: {reason}")]
    Open {
        /// The adapter's name.
        adapter: String,
        /// What the driver said.
        reason: String,
    },
    /// This program was built for the CPU alone.
    #[error(
        "this build has no GPU support; rebuild with the default features, or use --device cpu"
    )]
    NotBuilt,
}

/// What an adapter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterKind {
    /// A graphics card.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A GPU lent to a virtual machine.
    Virtual,
    /// The CPU, pretending: good for tests, slower than `--device cpu`.
    Software,
    /// The driver does not say.
    Other,
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdapterKind::Discrete => "discrete GPU",
            AdapterKind::Integrated => "integrated GPU",
            AdapterKind::Virtual => "virtual GPU",
            AdapterKind::Software => "software, runs on the CPU",
            AdapterKind::Other => "unknown kind",
        })
    }
}

/// A GPU that could be opened.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// Its name, as the driver gives it.
    pub name: String,
    /// What it is.
    pub kind: AdapterKind,
    /// The graphics API that reaches it.
    pub api: &'static str,
    /// How many adapters of this kind come before it: how burn addresses real ones.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    index_in_kind: usize,
}

/// An opened device.
#[derive(Debug, Clone)]
pub struct Compute {
    /// The burn device, without autodiff.
    pub device: Device,
    /// Its short name.
    pub id: DeviceId,
    /// Its name for people.
    pub name: String,
    /// Whether it is burn's CPU backend.
    pub is_cpu: bool,
}

impl Compute {
    /// The CPU, which is always there.
    pub fn cpu() -> Compute {
        Compute {
            device: Device::flex(),
            id: DeviceId::Cpu,
            name: "CPU".to_string(),
            is_cpu: true,
        }
    }

    /// Opens a device.
    ///
    /// # Errors
    /// If there is no such device, or it does not open.
    pub fn open(id: DeviceId) -> Result<Compute, DeviceError> {
        match id {
            DeviceId::Cpu => Ok(Compute::cpu()),
            DeviceId::Gpu(number) => gpu::open(&numbered(number)?, id),
        }
    }
}

impl DeviceRequest {
    /// Checks that there is such a device, without opening it.
    ///
    /// # Errors
    /// If there is none.
    pub fn check_exists(self) -> Result<(), DeviceError> {
        match self {
            DeviceRequest::Fixed(DeviceId::Gpu(number)) => numbered(number).map(drop),
            _ => Ok(()),
        }
    }
}

impl Adapter {
    /// Whether it is a GPU, and not software or something that will not say.
    pub fn is_real(&self) -> bool {
        matches!(
            self.kind,
            AdapterKind::Discrete | AdapterKind::Integrated | AdapterKind::Virtual
        )
    }
}

/// Whether tensors of this device lie in the memory of the CPU.
pub fn is_cpu(device: &Device) -> bool {
    *device == Device::flex()
}

/// The lines of work that go on beside each other during training.
///
/// burn gives each thread of the program its own queue of GPU work, with its own
/// reserve of memory. Here the work wanders among the threads of a pool, so that
/// would be as many reserves as cores: these lines keep theirs wherever they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The learner's steps.
    Learning,
    /// The first half of the games of self-play.
    FirstHalf,
    /// The other half.
    SecondHalf,
}

impl Line {
    /// Does work that belongs to this line.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        StreamId { value: self as u64 }.executes(work)
    }
}

/// The adapters that this program can open, in the order of their numbers
/// `gpu:0`, `gpu:1`, ...: real ones first.
pub fn adapters() -> Vec<Adapter> {
    gpu::adapters()
}

fn numbered(number: usize) -> Result<Adapter, DeviceError> {
    if cfg!(not(feature = "gpu")) {
        return Err(DeviceError::NotBuilt);
    }
    let adapters = gpu::adapters();
    let count = adapters.len();
    adapters.into_iter().nth(number).ok_or_else(|| match count {
        0 => DeviceError::NoAdapter,
        1 => DeviceError::NoSuchAdapter {
            asked: number,
            found: "only gpu:0".to_string(),
        },
        _ => DeviceError::NoSuchAdapter {
            asked: number,
            found: format!("gpu:0 to gpu:{}", count - 1),
        },
    })
}

#[cfg(feature = "gpu")]
mod gpu {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    use burn::tensor::wgpu::{WgpuBackend, wgpu};
    use burn::tensor::{Device, DeviceKind};

    use super::{Adapter, AdapterKind, Compute, DeviceError, DeviceId};

    /// The graphics API of this platform, for wgpu and for burn.
    const API: (wgpu::Backends, WgpuBackend, &str) = if cfg!(target_os = "macos") {
        (wgpu::Backends::METAL, WgpuBackend::Metal, "Metal")
    } else {
        (wgpu::Backends::VULKAN, WgpuBackend::Vulkan, "Vulkan")
    };

    pub(super) fn adapters() -> Vec<Adapter> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: API.0,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let found = ready(instance.enumerate_adapters(API.0));
        let mut adapters: Vec<Adapter> = Vec::new();
        for info in found.iter().map(|adapter| adapter.get_info()) {
            let kind = match info.device_type {
                wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
                wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
                wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
                wgpu::DeviceType::Cpu => AdapterKind::Software,
                wgpu::DeviceType::Other => AdapterKind::Other,
            };
            let index_in_kind = adapters.iter().filter(|other| other.kind == kind).count();
            adapters.push(Adapter {
                name: info.name,
                kind,
                api: API.2,
                index_in_kind,
            });
        }
        adapters.sort_by_key(|adapter| adapter.kind as usize);
        adapters
    }

    /// The result of a future that does not wait, which outside of a browser
    /// holds for the listing of adapters.
    fn ready<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => unreachable!("native adapters are listed at once"),
        }
    }

    /// Opens an adapter, or hands out what was opened before: burn opens each
    /// only once in a process.
    pub(super) fn open(adapter: &Adapter, id: DeviceId) -> Result<Compute, DeviceError> {
        static OPENED: Mutex<Vec<((String, usize), Compute)>> = Mutex::new(Vec::new());
        let mut opened = OPENED.lock().expect("opening a device does not panic");
        let name = format!("{} ({})", adapter.name, adapter.kind);
        let key = (name, adapter.index_in_kind);
        match opened.iter().find(|(known, _)| *known == key) {
            Some((_, compute)) => Ok(compute.clone()),
            None => {
                let compute = open_first(adapter, id, key.0.clone())?;
                opened.push((key, compute.clone()));
                Ok(compute)
            }
        }
    }

    fn open_first(adapter: &Adapter, id: DeviceId, name: String) -> Result<Compute, DeviceError> {
        let index = adapter.index_in_kind;
        let kind = match adapter.kind {
            AdapterKind::Discrete => DeviceKind::DiscreteGpu(index),
            AdapterKind::Integrated => DeviceKind::IntegratedGpu(index),
            AdapterKind::Virtual => DeviceKind::VirtualGpu(index),
            // burn knows no numbers of these: the first, and what it takes by itself.
            AdapterKind::Software if index == 0 => DeviceKind::Cpu,
            AdapterKind::Other if adapters().len() == 1 => DeviceKind::DefaultDevice,
            AdapterKind::Software | AdapterKind::Other => {
                return Err(DeviceError::Open {
                    adapter: name,
                    reason: "burn cannot tell it from the other adapters".to_string(),
                });
            }
        };
        let device = Device::wgpu_options()
            .device_kind(kind)
            .graphics_api(API.1)
            .init()
            .map_err(|error| DeviceError::Open {
                adapter: adapter.name.clone(),
                reason: error.to_string(),
            })?;
        Ok(Compute {
            device,
            id,
            name,
            is_cpu: false,
        })
    }
}

#[cfg(not(feature = "gpu"))]
mod gpu {
    use super::{Adapter, Compute, DeviceError, DeviceId};

    pub(super) fn adapters() -> Vec<Adapter> {
        Vec::new()
    }

    pub(super) fn open(_: &Adapter, _: DeviceId) -> Result<Compute, DeviceError> {
        Err(DeviceError::NotBuilt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_are_read() {
        assert_eq!("auto".parse().ok(), Some(DeviceRequest::Auto));
        for (text, id) in [
            ("cpu", DeviceId::Cpu),
            ("gpu", DeviceId::Gpu(0)),
            ("gpu:3", DeviceId::Gpu(3)),
        ] {
            let request = DeviceRequest::Fixed(id);
            assert_eq!(text.parse().ok(), Some(request));
            assert_eq!(id.to_string().parse().ok(), Some(request));
        }
        for wrong in ["", "GPU", "gpu:", "gpu:x", "gpu:-1", "cuda"] {
            assert!(wrong.parse::<DeviceRequest>().is_err(), "{wrong}");
        }
    }
}
